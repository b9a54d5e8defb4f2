// Hook that reads a task's log, and follows it while the tab is visible.

import { useEffect, useRef, useState } from "preact/hooks";
import { stream } from "../hub/call.ts";
import { onChanges } from "../hub/events.ts";
import { HubError } from "../hub/request.ts";
import type { TaskEvent } from "../hub/types.ts";
import { TaskLog } from "./log.ts";

/** Shortest time between two drawings of a growing text, in milliseconds. */
const DRAW_INTERVAL = 80;

export interface LogView {
  log: TaskLog;
  /** Grows with each change of the log. */
  version: number;
  isLoaded: boolean;
}

export function useLog(id: string): LogView {
  const log = useRef(new TaskLog());
  const [state, setState] = useState({ version: 0, isLoaded: false });
  useEffect(() => {
    log.current = new TaskLog();
    let gone = false;
    let isLoaded = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let abort: AbortController | undefined;
    const draw = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!gone) setState((old) => ({ version: old.version + 1, isLoaded }));
      }, DRAW_INTERVAL);
    };
    const follow = async () => {
      if (gone || abort || document.hidden) return;
      const mine = new AbortController();
      abort = mine;
      try {
        const params = { id, afterSeq: log.current.lastSeq };
        for await (const { value, seq } of stream<TaskEvent>("tasks/resubscribe", params, mine.signal)) {
          if (mine.signal.aborted) break;
          // After a restored backup, numbers may begin again.
          if (seq !== undefined && seq <= log.current.lastSeq) continue;
          log.current.apply(value, seq);
          draw();
        }
      } catch (error) {
        // A broken stream is taken up again with the next report of the hub's state.
        if (error instanceof HubError && error.kind === "rpc" && log.current.lastSeq > 0 && !gone) log.current = new TaskLog();
      } finally {
        if (abort === mine) abort = undefined;
        if (!mine.signal.aborted) isLoaded = true;
        draw();
      }
    };
    const stop = onChanges((changes) => {
      if (changes.all || changes.tasks.has(id)) void follow();
    });
    const onVisibility = () => {
      if (document.hidden) {
        abort?.abort();
        abort = undefined;
      } else void follow();
    };
    document.addEventListener("visibilitychange", onVisibility);
    void follow();
    return () => {
      gone = true;
      abort?.abort();
      clearTimeout(timer);
      stop();
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, [id]);
  return { log: log.current, ...state };
}
