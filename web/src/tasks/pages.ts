// Pages of the list of tasks, read on demand and again after changes.

import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import type { HubStatus, Task } from "../hub/types.ts";
import type { Filter } from "./filter.ts";
import { listParams } from "./filter.ts";

/** Rows of a page. */
export const PAGE = 50;
/** Pages that are kept; those farthest from the view leave first. */
const MOST_PAGES = 60;

export class TaskPages {
  /** Number of rows as far as it is known; may grow and shrink. */
  length = PAGE;
  failure: HubError | undefined;
  isLoaded = false;
  private readonly pages = new Map<number, Task[]>();
  private readonly reading = new Set<number>();
  private generation = 0;
  /** Position of the list in pixels, for the way back to it. */
  top = 0;
  private abort = new AbortController();

  constructor(
    readonly filter: Filter,
    public onChange: () => void,
  ) {}

  /** Reads the number of all tasks, which the hub tells only without a filter. */
  async readTotal(): Promise<void> {
    if (this.filter.state !== "" || this.filter.agent !== "" || this.filter.directory !== "") return;
    try {
      const status = await call<HubStatus>("hub/status", {}, this.abort.signal);
      if (status.totalTasks > this.length) {
        this.length = status.totalTasks;
        this.onChange();
      }
    } catch {
      // The list grows while it is scrolled.
    }
  }

  /** Row at a position, if it is here. */
  row(at: number): Task | undefined {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /** Reads the pages of a range of rows. */
  need(from: number, to: number): void {
    const [first, last] = [Math.floor(from / PAGE), Math.floor(Math.max(from, to) / PAGE)];
    for (let page = first; page <= last; page += 1) {
      if (!this.pages.has(page) && !this.reading.has(page)) void this.read(page);
    }
    this.trim((first + last) / 2);
  }

  /** Reads a range again, and forgets all other pages. */
  refresh(from: number, to: number): void {
    this.generation += 1;
    const [first, last] = [Math.floor(from / PAGE), Math.floor(Math.max(from, to) / PAGE)];
    for (const page of [...this.pages.keys()]) if (page < first || page > last) this.pages.delete(page);
    this.reading.clear();
    for (let page = first; page <= last; page += 1) void this.read(page);
  }

  /** Ends all reads; what was read stays for the way back. */
  close(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.reading.clear();
    this.onChange = () => undefined;
  }

  private async read(page: number): Promise<void> {
    const { generation } = this;
    const { signal } = this.abort;
    this.reading.add(page);
    try {
      const params = { ...listParams(this.filter), limit: PAGE, offset: page * PAGE, summary: true };
      const tasks = await call<Task[]>("hub/tasks/list", params, signal);
      if (generation !== this.generation) return;
      this.pages.set(page, tasks);
      this.failure = undefined;
      this.isLoaded = true;
      const end = page * PAGE + tasks.length;
      if (tasks.length < PAGE) {
        // An empty page says only that the end is before it.
        if (tasks.length > 0 || page === 0 || this.pages.has(page - 1)) this.length = end;
        else this.length = Math.min(this.length, page * PAGE);
      } else if (end >= this.length) this.length = end + PAGE;
    } catch (error) {
      if (signal.aborted) return;
      this.failure = error instanceof HubError ? error : new HubError("http", String(error));
    } finally {
      if (generation === this.generation && !signal.aborted) this.reading.delete(page);
    }
    this.onChange();
  }

  private trim(middle: number): void {
    if (this.pages.size <= MOST_PAGES) return;
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
    for (const page of far.slice(0, this.pages.size - MOST_PAGES)) this.pages.delete(page);
  }
}
