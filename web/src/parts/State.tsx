// State of a task: a mark whose shape tells the state without its colour, and its name.

import type { TaskState } from "../hub/types.ts";
import { stateName } from "../text/words.ts";

const MARKS: Record<string, string> = {
  submitted: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11",
  working: "M8 2.5a5.5 5.5 0 0 1 0 11",
  "input-required": "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11M8 5.2v3.4M8 10.7v.1",
  "auth-required": "M4.5 7.5h7v5h-7zM5.8 7.3V5.6a2.2 2.2 0 0 1 4.4 0v1.7",
  completed: "M3.5 8.5l3 3l6-7",
  failed: "M4 4l8 8M12 4l-8 8",
  rejected: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11M4.2 11.8l7.6-7.6",
  canceled: "M4 8h8",
  unknown: "M8 8h.1",
};

export function StateMark({ state }: { state: TaskState }) {
  return (
    <svg class={`state-mark state-${state}`} width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path d={MARKS[state] ?? MARKS.unknown} />
    </svg>
  );
}

export function State({ state }: { state: TaskState }) {
  return (
    <span class={`state state-${state}`}>
      <StateMark state={state} />
      {stateName(state)}
    </span>
  );
}
