// The conversation of a task, with its open question and the field for the next message.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Question, Task } from "../hub/types.ts";
import { isFinal } from "../hub/types.ts";
import type { AnswersHandle } from "../inbox/Answers.tsx";
import { QuestionCard } from "../inbox/QuestionCard.tsx";
import { count } from "../text/words.ts";
import { blocksOf } from "./blocks.ts";
import { Composer } from "./Composer.tsx";
import { AgentMessage, ArtifactView, UserMessage } from "./MessageView.tsx";
import { Steps } from "./Steps.tsx";
import type { LogView } from "./use-log.ts";

interface Props {
  task: Task;
  view: LogView;
  questions: { question: Question; closed?: string }[];
  handle: { current: AnswersHandle | null };
  onSent: () => void;
}

/** Distance from the end of the page within which new text keeps the end in view, in pixels. */
const NEAR_END = 120;
/** Blocks that are drawn at first; the latest ones. */
const SHOWN_BLOCKS = 150;

export function Conversation({ task, view, questions, handle, onSent }: Props) {
  const { log } = view;
  // Without the log, messages of the history are shown; the log adds steps and times.
  const blocks = blocksOf(task, view.isLoaded || !isFinal(task.status.state) ? log.entries : []);
  // The card of the open question has its text already.
  const asked = task.metadata?.question;
  const openId = typeof asked === "object" && asked !== null && !Array.isArray(asked) ? asked.id : undefined;
  const hiddenMessage = questions.some((it) => it.question.id === openId) ? task.status.message?.messageId : undefined;
  const isLive = task.status.state === "working" || task.status.state === "submitted";
  const [limit, setLimit] = useState(SHOWN_BLOCKS);
  const hidden = Math.max(0, blocks.length - limit);
  const agent = task.agentId ?? "Agent";
  const wasNearEnd = useRef(false);
  const root = document.documentElement;
  wasNearEnd.current = root.scrollHeight - window.innerHeight - window.scrollY < NEAR_END && window.scrollY > 0;
  useEffect(() => {
    if (isLive && wasNearEnd.current) window.scrollTo(0, root.scrollHeight);
  }, [view.version]);
  return (
    <div class="conversation">
      <h2 class="visually-hidden">Conversation</h2>
      {log.left > 0 && <p class="muted">{count(log.left, "early step")} left out</p>}
      {hidden > 0 && (
        <button type="button" class="link-button" onClick={() => setLimit(limit + 5 * SHOWN_BLOCKS)}>
          Show {count(hidden, "earlier entry", "earlier entries")}
        </button>
      )}
      {blocks.slice(hidden).map((block, at) => {
        switch (block.kind) {
          case "user":
            return <UserMessage key={block.key} message={block.message} />;
          case "agent":
            if (block.message.messageId === hiddenMessage) return null;
            return <AgentMessage key={block.key} message={block.message} agent={agent} time={block.time} />;
          case "artifact":
            return (
              <ArtifactView key={block.key} artifact={block.entry.artifact} isGrowing={isLive && !block.entry.isDone} />
            );
          case "steps":
            return <Steps key={block.key} steps={block.steps} isLive={isLive && at === blocks.length - hidden - 1} />;
        }
      })}
      {isLive && (
        <p class="at-work" role="status">
          <span class="at-work-dot" aria-hidden="true" />
          {task.metadata?.queued === true ? "Waits for a free slot" : task.status.state === "submitted" ? "Starting" : "Working"}
        </p>
      )}
      {questions.map(({ question, closed }, at) => (
        <div class="inline-question" key={question.id}>
          <QuestionCard question={question} closed={closed} isInline {...(at === 0 ? { handle } : {})} />
        </div>
      ))}
      <Composer task={task} hasQuestion={questions.some((it) => it.closed === undefined)} onSent={onSent} />
    </div>
  );
}
