// Tree of a task and the tasks that its agent gave to others.

import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import type { TreeTask } from "../hub/types.ts";
import { StateMark } from "../parts/State.tsx";
import { Exact, Line } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { plainLine } from "../text/plain.ts";
import { count, stateName, tokens } from "../text/words.ts";

export function Tree({ tasks, cut, current }: { tasks: readonly TreeTask[]; cut: boolean; current: string }) {
  return (
    <>
      <ul class="tree" aria-label="Tree of tasks">
        {tasks.map((task) => (
          <li key={task.id} class={task.id === current ? "is-current" : ""} data-depth={Math.min(task.depth, 12)}>
            <Link to={taskPath(task.id)} class="tree-task" current={task.id === current}>
              <StateMark state={task.state} />
              <span class="visually-hidden">{`Level ${task.depth + 1}, ${stateName(task.state)}: `}</span>
              <span class="tree-agent">
                <Exact text={task.agentId} />
              </span>
              {task.key !== undefined && (
                <span class="tag">
                  <Exact text={task.key} />
                </span>
              )}
              <span class="tree-text">
                <Line text={task.question?.text || plainLine(task.asked ?? "")} />
              </span>
              <span class="tree-usage muted">
                {task.tokens ? `${tokens(task.tokens)} tokens` : ""}
                {task.costUsd ? ` $${task.costUsd.toFixed(2)}` : ""}
              </span>
              <span class="tree-time muted">
                <Time time={task.updatedAt} />
              </span>
            </Link>
            {task.hidden ? <p class="muted tree-hidden">{count(task.hidden, "more sub-task")}</p> : null}
          </li>
        ))}
      </ul>
      {cut && <p class="muted">Some tasks are left out.</p>}
    </>
  );
}
