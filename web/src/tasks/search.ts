// Search for tasks by text: the hub has none, so the latest tasks are read and compared here.

import { useEffect, useState } from "preact/hooks";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import type { Task } from "../hub/types.ts";
import { type Filter, listParams, matches } from "./filter.ts";

const PAGE = 200;
/** Tasks that are searched before the user asks for more. */
export const SEARCHED = 2_000;
/** Most results. */
const MOST_FOUND = 1_000;

export interface Search {
  found: Task[];
  searched: number;
  isDone: boolean;
  isBusy: boolean;
  failure: HubError | undefined;
}

const NOTHING: Search = { found: [], searched: 0, isDone: false, isBusy: true, failure: undefined };

/** Searches up to `most` tasks; results appear as they are found. */
export function useSearch(filter: Filter, most: number, enabled: boolean): Search {
  const [search, setSearch] = useState<Search>(NOTHING);
  const key = JSON.stringify(filter);
  useEffect(() => {
    if (!enabled) return;
    const abort = new AbortController();
    const run = async () => {
      const found = new Map<string, Task>();
      setSearch(NOTHING);
      try {
        const params = { ...listParams(filter), summary: true };
        if (/^[0-9a-f-]{6,}$/i.test(filter.text)) {
          const byId = { ...params, idPrefix: filter.text.toLowerCase(), limit: 20 };
          for (const task of await call<Task[]>("hub/tasks/list", byId, abort.signal)) found.set(task.id, task);
        }
        for (let offset = 0; offset < most; offset += PAGE) {
          const tasks = await call<Task[]>("hub/tasks/list", { ...params, limit: PAGE, offset }, abort.signal);
          for (const task of tasks) if (matches(task, filter.text)) found.set(task.id, task);
          const isDone = tasks.length < PAGE;
          const isBusy = !isDone && offset + PAGE < most && found.size < MOST_FOUND;
          setSearch({ found: [...found.values()], searched: offset + tasks.length, isDone, isBusy, failure: undefined });
          if (!isBusy) return;
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        const failure = error instanceof HubError ? error : new HubError("http", String(error));
        setSearch((old) => ({ ...old, isBusy: false, failure }));
      }
    };
    // Typing begins a search once it pauses.
    const timer = setTimeout(() => void run(), 250);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, most, enabled]);
  return search;
}
