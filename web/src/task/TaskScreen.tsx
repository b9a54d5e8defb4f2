// A task: its conversation, changes, sub-tasks, timeline and raw JSON.

import { useRef } from "preact/hooks";
import { useShortcuts } from "../app/keys.ts";
import { Link } from "../app/Link.tsx";
import { address, taskPath } from "../app/router.ts";
import { useTitle } from "../app/title.ts";
import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import type { Task, TreeTask } from "../hub/types.ts";
import type { AnswersHandle } from "../inbox/Answers.tsx";
import { rows } from "../inbox/feed.ts";
import { Code } from "../parts/Code.tsx";
import { Command } from "../parts/Command.tsx";
import { Copy } from "../parts/Copy.tsx";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { State } from "../parts/State.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { titleOf } from "../text/words.ts";
import { Changes } from "./Changes.tsx";
import { Conversation } from "./Conversation.tsx";
import { Facts } from "./Facts.tsx";
import { TaskActions } from "./TaskActions.tsx";
import { Timeline } from "./Timeline.tsx";
import { Tree } from "./Tree.tsx";
import { useLog } from "./use-log.ts";

interface TreeResult {
  tasks: TreeTask[];
  cut: boolean;
}

/** True if the task has changes of its own, or may get some. */
function hasWorktree(task: Task): boolean {
  if (task.metadata?.worktreeTask !== undefined) return true;
  if (task.artifacts?.some((it) => it.artifactId === "patch" || it.name === "patch")) return true;
  return task.history?.some((it) => it.metadata?.worktree !== undefined && it.metadata.worktree !== false) ?? false;
}

function showQuestion(): void {
  const question = document.querySelector<HTMLElement>(".inline-question");
  question?.scrollIntoView({ block: "center" });
  question?.querySelector<HTMLElement>("textarea, input, select")?.focus({ preventScroll: true });
}

export function TaskScreen({ id }: { id: string }) {
  const concerns = { concerns: (changes: { tasks: Set<string> }) => changes.tasks.has(id) };
  const task = useQuery(`task ${id}`, (abort) => call<Task>("tasks/get", { id }, abort), concerns);
  const knownTree = useRef(new Set<string>());
  const tree = useQuery(
    `tree ${id}`,
    async (abort) => {
      const result = await call<TreeResult>("hub/tasks/tree", { id, limit: 500 }, abort);
      knownTree.current = new Set(result.tasks.map((it) => it.id));
      return result;
    },
    { concerns: (changes) => [...changes.tasks].some((it) => it === id || knownTree.current.has(it)) },
  );
  const agentId = tree.data?.tasks[0]?.agentId;
  const contextId = task.data?.contextId;
  const neighbours = useQuery(
    `context ${contextId}`,
    (abort) => call<Task[]>("hub/tasks/list", { contextId, limit: 20, summary: true }, abort),
    { ...concerns, enabled: contextId !== undefined },
  );
  const view = useLog(id);
  useTitle(task.data ? titleOf(task.data) : "Task");
  const handle = useRef<AnswersHandle | null>(null);
  const questions = rows.value
    .filter((row) => row.question.taskId === id || row.question.rootTaskId === id)
    .map((row) => ({ question: row.question, ...(row.closed === undefined ? {} : { closed: row.closed }) }));
  useShortcuts("Task", [
    { key: "y", text: "Allow once", run: () => handle.current?.allow() },
    { key: "n", text: "Deny", run: () => handle.current?.deny() },
    { key: "r", text: "Write", run: () => document.querySelector<HTMLElement>(".conversation textarea")?.focus() },
    { key: "a", text: "Allow always: make a rule", run: () => handle.current?.always() },
    { key: "l", text: "Later", run: () => handle.current?.later() },
  ]);
  if (!task.data) {
    if (!task.error) return null;
    if (task.error.data.reason === "TASK_NOT_FOUND" || task.error.code === -32001) {
      return (
        <Empty>
          <h1>There is no such task.</h1>
          <p>
            It may have been deleted with its conversation. <Link to="tasks">All tasks</Link>
          </p>
        </Empty>
      );
    }
    return <Failure error={task.error} onRetry={task.refresh} />;
  }
  const current: Task = agentId === undefined ? task.data : { ...task.data, agentId };
  const shown = address.value.query.get("view") ?? "";
  const path = taskPath(id);
  const subTasks = (tree.data?.tasks.length ?? 1) - 1;
  const tabs = [
    { view: "", name: "Conversation" },
    ...(hasWorktree(current) ? [{ view: "changes", name: "Changes" }] : []),
    ...(subTasks > 0 ? [{ view: "tree", name: `Sub-tasks ${subTasks}` }] : []),
    { view: "timeline", name: "Timeline" },
    { view: "json", name: "JSON" },
  ];
  const fix = current.metadata?.fix;
  const json = () => JSON.stringify(current, null, 2);
  return (
    <div class="screen task">
      <header class="task-head">
        <div class="task-title">
          <h1>
            <Prose text={titleOf(current)} />
          </h1>
          <p class="task-line">
            <State state={current.status.state} />
            <Exact text={current.agentId ?? ""} />
            {typeof current.metadata?.reason === "string" && (
              <span class="tag">
                <Exact text={current.metadata.reason} />
              </span>
            )}
            {shown === "" && questions.some((it) => it.closed === undefined) && (
              <button type="button" class="small-button" onClick={showQuestion}>
                Go to the question
              </button>
            )}
          </p>
        </div>
        <TaskActions task={current} onChange={task.refresh} />
      </header>
      <nav class="tabs task-tabs" aria-label="Views of the task">
        {tabs.map((tab) => (
          <Link key={tab.view} to={tab.view === "" ? path : `${path}?view=${tab.view}`} current={tab.view === shown}>
            {tab.name}
          </Link>
        ))}
      </nav>
      {task.error && <Failure error={task.error} onRetry={task.refresh} />}
      <div class="task-body">
        <div class="task-main">
          {typeof fix === "string" && shown === "" && (
            <div class="task-fix">
              <p>To repair the failure, run:</p>
              <Command text={fix} />
            </div>
          )}
          {shown === "" && (
            <Conversation task={current} view={view} questions={questions} handle={handle} onSent={task.refresh} />
          )}
          {shown === "changes" && <Changes id={id} />}
          {shown === "tree" && tree.data && <Tree tasks={tree.data.tasks} cut={tree.data.cut} current={id} />}
          {shown === "timeline" && <Timeline changes={view.log.changes} />}
          {shown === "json" && (
            <div class="raw">
              <Copy text={json()} label="Copy the JSON" />
              <Code text={json()} label="The task as JSON" lines={400} />
            </div>
          )}
        </div>
        <Facts task={current} log={view.log} neighbours={neighbours.data ?? []} />
      </div>
    </div>
  );
}
