// Facts about a task: agent, directory, times, usage, plan and neighbours.

import type { ComponentChildren } from "preact";
import { Link } from "../app/Link.tsx";
import { isWide } from "../app/media.ts";
import { taskPath } from "../app/router.ts";
import { isFinal, type Json, type JsonObject, type Task } from "../hub/types.ts";
import { Copy } from "../parts/Copy.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { duration } from "../text/time.ts";
import { directoryOf, titleOf, tokens } from "../text/words.ts";
import type { TaskLog } from "./log.ts";

function object(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function number(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

const PLAN: Record<string, string> = { pending: "pending", in_progress: "in progress", completed: "completed" };

function planDone(log: TaskLog): number {
  return log.plan.filter((it) => it.status === "completed").length;
}

interface Props {
  task: Task;
  log: TaskLog;
  neighbours: Task[];
}

export function Facts({ task, log, neighbours }: Props) {
  const metadata = task.metadata ?? {};
  const usage = object(metadata.usage);
  const cost = number(metadata.cost_usd);
  const context = object(metadata.context);
  const percent = number(object(metadata.progress).percent);
  const parent = metadata.parentTaskId;
  const from = object(metadata.handoffFrom);
  const to = object(metadata.handoff);
  const directory = directoryOf(task);
  const created = log.changes[0]?.time;
  const input = number(usage.input_tokens);
  const output = number(usage.output_tokens);
  const summary = [
    "Facts",
    ...(log.plan.length > 0 ? [`plan ${planDone(log)}/${log.plan.length}`] : []),
    ...(cost !== undefined && cost > 0 ? [`$${cost.toFixed(2)}`] : []),
    ...(neighbours.length > 1 ? [`${neighbours.length} tasks in the conversation`] : []),
  ];
  const content = (
    <>
      <dl class="facts">
        <Fact name="Agent">
          <Exact text={task.agentId ?? ""} />
        </Fact>
        {directory !== undefined && (
          <Fact name="Directory">
            <code>
              <Exact text={directory} />
            </code>
          </Fact>
        )}
        {created !== undefined && (
          <Fact name="Created">
            <Time time={created} />
          </Fact>
        )}
        <Fact name="Changed">
          <Time time={task.status.timestamp} />
          {created !== undefined && isFinal(task.status.state) && (
            <span class="muted"> after {duration(created, task.status.timestamp)}</span>
          )}
        </Fact>
        {percent !== undefined && !isFinal(task.status.state) && (
          <Fact name="Progress">
            <progress max={100} value={percent} aria-label="Progress" /> {Math.round(percent)} %
          </Fact>
        )}
        {(input !== undefined || output !== undefined) && (
          <Fact name="Tokens">
            {tokens(input ?? 0)} in, {tokens(output ?? 0)} out
          </Fact>
        )}
        {cost !== undefined && cost > 0 && (
          <Fact name="Cost">
            ${cost.toFixed(cost < 0.1 ? 4 : 2)}
            {metadata.costFromPrices === true && <span class="muted"> by your prices</span>}
          </Fact>
        )}
        {number(context.size) !== undefined && (
          <Fact name="Context">
            {tokens(number(context.used) ?? 0)} of {tokens(number(context.size) ?? 0)} tokens
          </Fact>
        )}
        {typeof parent === "string" && (
          <Fact name="Part of">
            <Link to={taskPath(parent)}>the task that began it</Link>
          </Fact>
        )}
        {typeof from.task === "string" && (
          <Fact name="Taken over">
            <Link to={taskPath(from.task)}>
              from <Exact text={String(from.agent ?? "")} />
            </Link>
          </Fact>
        )}
        {typeof to.task === "string" && (
          <Fact name="Handed over">
            <Link to={taskPath(to.task)}>
              to <Exact text={String(to.to ?? "")} />
            </Link>
          </Fact>
        )}
        <Fact name="Id">
          <span class="id-line">
            <code title={task.id}>
              <Exact text={task.id.slice(-12)} />
            </code>
            <Copy text={task.id} />
          </span>
        </Fact>
      </dl>
      {log.plan.length > 0 && (
        <details class="more plan" open={!isFinal(task.status.state)}>
          <summary>
            Plan {planDone(log)}/{log.plan.length}
          </summary>
          <ol>
            {log.plan.map((item, at) => (
              <li key={at} class={PLAN[item.status] === undefined ? undefined : `plan-${item.status}`}>
                <span class="visually-hidden">{PLAN[item.status] ?? "pending"}: </span>
                <Prose text={item.content} />
              </li>
            ))}
          </ol>
        </details>
      )}
      {neighbours.length > 1 && (
        <nav class="neighbours" aria-label="Tasks of this conversation">
          <h2>Conversation</h2>
          <ul>
            {neighbours.map((it) => (
              <li key={it.id}>
                <Link to={taskPath(it.id)} current={it.id === task.id}>
                  <Prose text={titleOf(it)} />
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      )}
    </>
  );
  return (
    <aside class="facts-panel" aria-label="Facts about the task">
      {isWide.value ? (
        content
      ) : (
        <details class="more">
          <summary>{summary.join(" · ")}</summary>
          <div class="facts-content">{content}</div>
        </details>
      )}
    </aside>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
