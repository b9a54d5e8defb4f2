// A question with all that one needs to decide it, and its answers.

import { useEffect, useRef, useState } from "preact/hooks";
import { now } from "../app/clock.ts";
import { useDraft } from "../app/drafts.ts";
import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import { AgentPath } from "../parts/AgentPath.tsx";
import { LongText } from "../parts/LongText.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { Time, localTime } from "../parts/Time.tsx";
import { plainLine } from "../text/plain.ts";
import { isUrgent, remaining } from "../text/time.ts";
import type { Question, Task } from "../hub/types.ts";
import { ActionView } from "./ActionView.tsx";
import { Answers, type AnswersHandle } from "./Answers.tsx";
import { detailsOf } from "./summary.ts";

const KINDS = { permission: "Asks for permission", input: "Asks", auth: "Needs a login" } as const;

/** Name of a tool, and the title of its call if that says more. */
function toolText(tool: string | undefined, title: string | undefined): string {
  if (tool === undefined || title === undefined) return title ?? tool ?? "";
  return title.toLowerCase().startsWith(tool.toLowerCase()) ? title : `${tool}: ${title}`;
}

interface Props {
  question: Question;
  closed?: string | undefined;
  /** True on the task's own screen, which has the link and the request already. */
  isInline?: boolean;
  handle?: { current: AnswersHandle | null };
}

export function QuestionCard({ question, closed, isInline = false, handle }: Props) {
  const task = useQuery(
    `question ${question.id}`,
    (abort) => call<Task>("tasks/get", { id: question.taskId, historyLength: 0 }, abort),
    { concerns: (changes) => changes.tasks.has(question.taskId), enabled: !question.queued },
  );
  const details = task.data && detailsOf(task.data, question.id);
  const [draft, setDraft] = useDraft(`answer.${question.id}`);
  const heading = useRef<HTMLHeadingElement>(null);
  const [wasClosed, setWasClosed] = useState(false);
  useEffect(() => {
    if (closed !== undefined && !wasClosed) {
      setWasClosed(true);
      setDraft("");
    }
  }, [closed]);
  const hasText = question.text.trim() !== "";
  return (
    <article class="question" aria-labelledby={`question-${question.id}`}>
      <header class="question-head">
        <h2 id={`question-${question.id}`} ref={heading}>
          <AgentPath path={question.path} agent={question.agentId} /> <span class="question-kind">{KINDS[question.kind]}</span>
        </h2>
        <p class="question-meta">
          <span>
            asked <Time time={question.openedAt} />
          </span>
          {question.expiresAt !== undefined && (
            <span class={question.expiring || isUrgent(question.expiresAt, now.value) ? "urgent" : ""} title={localTime(question.expiresAt)}>
              {remaining(question.expiresAt, now.value)}
            </span>
          )}
          {question.queued && <span class="tag">asked next</span>}
          {question.interrupted && <span class="tag">its run was interrupted</span>}
          {question.setAside && <span class="tag">set aside</span>}
          {question.permission?.outsideSandbox && <span class="tag tag-warning">outside its sandbox</span>}
        </p>
      </header>
      {!isInline && (
        <dl class="facts">
          <div>
            <dt>Works on</dt>
            <dd>
              <Link to={taskPath(question.rootTaskId)}>
                <Prose text={plainLine(question.request) || "the task"} />
              </Link>
              {question.taskId !== question.rootTaskId && (
                <>
                  {" · "}
                  <Link to={taskPath(question.taskId)}>sub-task that asks</Link>
                </>
              )}
            </dd>
          </div>
          {question.directory !== undefined && (
            <div>
              <dt>Directory</dt>
              <dd>
                <code>
                  <Exact text={question.directory} />
                </code>
              </dd>
            </div>
          )}
          {(details?.title ?? question.tool) !== undefined && (
            <div>
              <dt>Tool</dt>
              <dd>
                <Exact text={toolText(question.tool, details?.title)} />
              </dd>
            </div>
          )}
        </dl>
      )}
      <ActionView question={question} details={details} />
      {hasText && (
        <div class="question-text">
          <LongText text={question.text} lines={30}>
            {(shown) => (
              <p dir="auto">
                <Prose text={shown} />
              </p>
            )}
          </LongText>
        </div>
      )}
      {closed !== undefined ? (
        <p class="closed-note" role="status">
          <Prose text={closed} />
        </p>
      ) : (
        <Answers question={question} details={details} draft={draft} setDraft={setDraft} handle={handle} />
      )}
    </article>
  );
}
