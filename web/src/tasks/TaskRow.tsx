// A task in the list.

import { useMemo } from "preact/hooks";
import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import type { Json, JsonObject, Task } from "../hub/types.ts";
import { State } from "../parts/State.tsx";
import { Exact, Line } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { visibleText } from "../text/visible.ts";
import { directoryOf, titleOf, tokens } from "../text/words.ts";

function object(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

/** Cost and tokens of a task, if its agent reported them. */
export function usageText(task: Task): string {
  const cost = task.metadata?.cost_usd;
  const usage = object(task.metadata?.usage);
  const total = [usage.input_tokens, usage.output_tokens].reduce<number>((sum, it) => sum + (typeof it === "number" ? it : 0), 0);
  if (typeof cost === "number" && cost > 0) return `$${cost.toFixed(cost < 0.1 ? 3 : 2)}`;
  return total > 0 ? `${tokens(total)} tok` : "";
}

/** Last two names of a directory, and whether names before them are left out. */
export function shortDirectory(directory: string): { isCut: boolean; text: string } {
  const names = directory.split("/").filter((it) => it !== "");
  return names.length <= 2 ? { isCut: false, text: directory } : { isCut: true, text: `/${names.slice(-2).join("/")}` };
}

export function TaskRow({ task }: { task: Task | undefined }) {
  // The same element again lets Preact skip the row while the list scrolls.
  return useMemo(() => (task ? <Row task={task} /> : <div class="task-row is-empty" aria-busy="true" />), [task]);
}

function Row({ task }: { task: Task }) {
  const directory = directoryOf(task);
  const short = directory === undefined ? undefined : shortDirectory(directory);
  return (
    <Link to={taskPath(task.id)} class="task-row" isRow>
      <State state={task.status.state} />
      <span class="task-row-title">
        <Line text={titleOf(task)} />
      </span>
      <span class="task-row-agent">
        <Exact text={task.agentId ?? ""} />
      </span>
      <span class="task-row-directory muted" title={directory && visibleText(directory)}>
        {short?.isCut && "…"}
        {short && <Exact text={short.text} />}
      </span>
      <span class="task-row-usage muted">{usageText(task)}</span>
      <span class="task-row-time muted">
        <Time time={task.status.timestamp} />
      </span>
    </Link>
  );
}
