// All tasks: a virtual list with filters, the latest first.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../app/keys.ts";
import { Link } from "../app/Link.tsx";
import { isRoomy } from "../app/media.ts";
import { address, go, taskPath } from "../app/router.ts";
import { onChanges } from "../hub/events.ts";
import type { Task } from "../hub/types.ts";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { count } from "../text/words.ts";
import { readFilter } from "./filter.ts";
import { Filters } from "./Filters.tsx";
import { TaskPages } from "./pages.ts";
import { SEARCHED, useSearch } from "./search.ts";
import { TaskRow } from "./TaskRow.tsx";
import { VirtualList, type VirtualListHandle } from "./VirtualList.tsx";

/** Shortest time between two reads after changes, in milliseconds. */
const REFRESH_INTERVAL = 1_000;

/** Pages of the list that was shown last: on the way back from a task, it is where it was. */
let latest: TaskPages | undefined;

export function TasksScreen() {
  const filter = readFilter(address.value.query);
  const key = JSON.stringify({ ...filter, text: "" });
  const isSearch = filter.text.trim() !== "";
  const [, draw] = useState(0);
  const [most, setMost] = useState(SEARCHED);
  const [isPaused, setPaused] = useState(false);
  const range = useRef({ from: 0, to: 0 });
  const pages = useMemo(() => {
    const known = latest && JSON.stringify({ ...latest.filter, text: "" }) === key ? latest : undefined;
    latest = known ?? new TaskPages(filter, () => undefined);
    return latest;
  }, [key]);
  const search = useSearch(filter, most, isSearch);
  useEffect(() => {
    pages.onChange = () => draw((it) => it + 1);
    if (pages.isLoaded) pages.refresh(range.current.from, range.current.to);
    void pages.readTotal();
    return () => pages.close();
  }, [pages]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onChanges(() => {
      // Rows must not move away while somebody reads further down.
      if (range.current.from > 20) {
        setPaused(true);
        return;
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        pages.refresh(range.current.from, range.current.to);
      }, REFRESH_INTERVAL);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [pages]);

  const row = (at: number): Task | undefined => (isSearch ? search.found[at] : pages.row(at));
  const length = isSearch ? search.found.length : pages.length;
  const list = useRef<VirtualListHandle | null>(null);
  // Not a state: a second key may arrive before the next rendering.
  const active = useRef(-1);
  useEffect(() => {
    active.current = -1;
  }, [key, filter.text]);
  const focusActive = () => {
    const link = document.querySelector<HTMLElement>(`.virtual-row[aria-posinset="${active.current + 1}"] a`);
    link?.focus({ preventScroll: true });
    return link !== null;
  };
  const move = (to: number) => {
    active.current = Math.max(0, Math.min(length - 1, to));
    list.current?.scrollTo(active.current);
    // A row that was out of view is drawn first.
    if (!focusActive()) requestAnimationFrame(focusActive);
  };
  useShortcuts("Tasks", [
    { key: "j", text: "Next task", run: () => move(active.current + 1) },
    { key: "k", text: "Previous task", run: () => move(active.current - 1) },
    { key: "G", text: "Last task that is known", run: () => move(length - 1) },
    {
      key: "Enter",
      text: "Open the task",
      run: () => {
        const task = row(active.current);
        if (task) go(taskPath(task.id));
      },
    },
  ]);
  const failure = isSearch ? search.failure : pages.failure;
  const isEmpty = isSearch ? !search.isBusy && length === 0 : pages.isLoaded && length === 0;
  const refresh = () => {
    setPaused(false);
    pages.refresh(range.current.from, range.current.to);
  };
  return (
    <div class="screen tasks">
      <header class="screen-head tasks-head">
        <h1>Tasks</h1>
        <Filters filter={filter} />
      </header>
      {failure && <Failure error={failure} onRetry={refresh} />}
      {isSearch && (
        <p class="tasks-note" role="status">
          {count(search.found.length, "task")} found in the latest {search.searched.toLocaleString("en")}
          {search.isBusy ? ", searching" : ""}
          {!search.isBusy && !search.isDone && (
            <button type="button" class="link-button" onClick={() => setMost(most + 5 * SEARCHED)}>
              Search further
            </button>
          )}
        </p>
      )}
      {!isSearch && isPaused && (
        <p class="tasks-note" role="status">
          Tasks changed.
          <button type="button" class="link-button" onClick={refresh}>
            Refresh
          </button>
        </p>
      )}
      {isEmpty ? (
        <Empty title={isSearch || key !== JSON.stringify({ state: "", agent: "", directory: "", text: "" }) ? "No task matches." : "There are no tasks yet."}>
          <p>
            <Link to="send">Send a message to an agent</Link>
          </p>
        </Empty>
      ) : (
        <>
          <div class="task-columns" aria-hidden="true">
            <span>State</span>
            <span>Request</span>
            <span>Agent</span>
            <span>Directory</span>
            <span class="task-row-usage">Usage</span>
            <span class="task-row-time">Changed</span>
          </div>
          <VirtualList
            key={isSearch ? "search" : key}
            length={length}
            rowHeight={isRoomy.value ? 38 : 62}
            label="Tasks"
            handle={list}
            top={isSearch ? 0 : pages.top}
            onTop={(top) => {
              if (!isSearch) pages.top = top;
            }}
            render={(index) => <TaskRow task={row(index)} />}
            onFocusRow={(index) => {
              active.current = index;
            }}
            onRange={(from, to) => {
              range.current = { from, to };
              if (from <= 20 && isPaused) setPaused(false);
              if (!isSearch) pages.need(from, to);
            }}
          />
        </>
      )}
    </div>
  );
}
