// Notices below the questions: tasks that failed lately, and warnings of the hub.

import { useState } from "preact/hooks";
import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import { read, write } from "../app/storage.ts";
import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import type { HubStatus, Task } from "../hub/types.ts";
import { Command } from "../parts/Command.tsx";
import { StateMark } from "../parts/State.tsx";
import { Exact, Line, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { cut, textOf, titleOf } from "../text/words.ts";

const DAY = 86_400_000;

export function Notices() {
  const [seen, setSeen] = useState(read("notices-seen"));
  const failed = useQuery(
    "failed",
    (abort) => {
      const since = new Date(Math.max(Date.now() - DAY, seen === "" ? 0 : Date.parse(seen) + 1)).toISOString();
      return call<Task[]>("hub/tasks/list", { state: "failed", since, limit: 20, summary: true }, abort);
    },
    { concerns: (changes) => changes.tasks.size > 0 },
  );
  const status = useQuery("status", (abort) => call<HubStatus>("hub/status", {}, abort), {
    concerns: (changes) => changes.agents,
    every: 60_000,
  });
  const tasks = (failed.data ?? []).filter((task) => seen === "" || task.status.timestamp > seen);
  const warnings = warningsOf(status.data);
  if (tasks.length === 0 && warnings.length === 0) return null;
  const dismiss = () => {
    const latest = tasks.map((task) => task.status.timestamp).sort().at(-1) ?? "";
    write("notices-seen", latest);
    setSeen(latest);
  };
  return (
    <>
      {warnings.length > 0 && (
        <section class="notices" aria-label="Warnings of the hub">
          <h2>The hub warns</h2>
          <ul>
            {warnings.map((warning) => (
              <li key={warning.text} class="notice-warning">
                <p>
                  <Prose text={warning.text} />
                </p>
                {warning.fix !== undefined && <Command text={warning.fix} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      {tasks.length > 0 && (
        <section class="notices" aria-label="Tasks that failed lately">
          <div class="notices-head">
            <h2>Failed in the last 24 hours</h2>
            <button type="button" class="small-button" onClick={dismiss}>
              Seen
            </button>
          </div>
          <ul>
            {tasks.map((task) => (
              <li key={task.id}>
                <Link to={taskPath(task.id)} class="notice">
                  <StateMark state="failed" />
                  <span class="notice-title">
                    <Line text={titleOf(task)} />
                  </span>
                  <span class="notice-reason muted">
                    <Exact text={task.agentId ?? ""} />
                    {" · "}
                    <Line text={cut(textOf(task.status.message?.parts ?? []).replace(/\s+/g, " ") || String(task.metadata?.reason ?? ""), 140)} />
                  </span>
                  <span class="muted notice-time">
                    <Time time={task.status.timestamp} />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function warningsOf(status: HubStatus | undefined): { text: string; fix?: string }[] {
  if (!status) return [];
  const warnings = (status.warnings ?? []).map((it) => ({ text: typeof it === "string" ? it : JSON.stringify(it) }));
  const storage =
    status.storage && status.storage.status !== "ok"
      ? [{ text: `The store cannot be written: ${status.storage.error ?? ""}`, ...(status.storage.fix ? { fix: status.storage.fix } : {}) }]
      : [];
  const rejected = (status.rejectedPlugins ?? []).map((it) => ({ text: `${it.file} cannot join: ${it.error}` }));
  return [...storage, ...warnings, ...rejected];
}
