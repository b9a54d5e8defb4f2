// Hook that reads a result of the hub and keeps it up to date.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { HubError } from "./request.ts";
import { type Changes, onChanges } from "./events.ts";

export interface Query<T> {
  data: T | undefined;
  error: HubError | undefined;
  loading: boolean;
  refresh: () => void;
}

interface Options {
  /** Says which changes concern the result; all by default. */
  concerns?: (changes: Changes) => boolean;
  /** Interval at which the result is read without a reported change, in milliseconds. */
  every?: number;
  /** False reads nothing yet. */
  enabled?: boolean;
}

/** Reads with `load` whenever `key` changes or the hub reports a change; one read at a time. */
export function useQuery<T>(key: string, load: (abort: AbortSignal) => Promise<T>, options: Options = {}): Query<T> {
  const [state, setState] = useState<{ key: string; data: T | undefined; error: HubError | undefined; loading: boolean }>({
    key,
    data: undefined,
    error: undefined,
    loading: true,
  });
  const latest = useRef({ load, options });
  latest.current = { load, options };
  const runner = useRef<() => void>(() => undefined);
  const enabled = options.enabled !== false;

  useEffect(() => {
    if (!enabled) return;
    const abort = new AbortController();
    let busy = false;
    let again = false;
    const run = async () => {
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      do {
        again = false;
        try {
          const data = await latest.current.load(abort.signal);
          if (!abort.signal.aborted) setState({ key, data, error: undefined, loading: false });
        } catch (error) {
          if (abort.signal.aborted) return;
          const failure = error instanceof HubError ? error : new HubError("http", String(error));
          // What was read before stays visible while the hub is away.
          setState((old) => ({ key, data: old.key === key ? old.data : undefined, error: failure, loading: false }));
        }
      } while (again && !abort.signal.aborted);
      busy = false;
    };
    runner.current = () => void run();
    setState((old) => (old.key === key ? old : { key, data: undefined, error: undefined, loading: true }));
    void run();
    const stop = onChanges((changes) => {
      const { concerns } = latest.current.options;
      if (changes.all || !concerns || concerns(changes)) void run();
    });
    const every = latest.current.options.every;
    const timer =
      every === undefined
        ? undefined
        : setInterval(() => {
            if (!document.hidden) void run();
          }, every);
    return () => {
      abort.abort();
      stop();
      if (timer !== undefined) clearInterval(timer);
    };
  }, [key, enabled]);

  const refresh = useCallback(() => runner.current(), []);
  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    loading: current ? state.loading : true,
    refresh,
  };
}
