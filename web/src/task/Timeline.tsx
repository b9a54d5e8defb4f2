// Changes of a task's state with their times.

import { State } from "../parts/State.tsx";
import { Prose } from "../parts/Text.tsx";
import { localTime } from "../parts/Time.tsx";
import { duration } from "../text/time.ts";
import { Empty } from "../parts/Empty.tsx";
import type { Change } from "./log.ts";

export function Timeline({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <Empty title="Nothing happened yet." />;
  return (
    <ol class="timeline">
      {changes.map((change, at) => {
        const before = changes[at - 1];
        return (
          <li key={at}>
            <span class="timeline-time">{localTime(change.time)}</span>
            <span class="timeline-after muted">{before ? `+${duration(before.time, change.time)}` : ""}</span>
            <span>
              <State state={change.state} />{" "}
              {change.note !== undefined && (
                <span class="muted">
                  <Prose text={change.note} />
                </span>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
