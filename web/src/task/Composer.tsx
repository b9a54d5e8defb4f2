// Field for the next message: to the task at work, as an answer, or as a new task of the
// conversation.

import { useState } from "preact/hooks";
import { useDraft } from "../app/drafts.ts";
import { go, taskPath } from "../app/router.ts";
import { HubError } from "../hub/request.ts";
import { sendMessage } from "../hub/send.ts";
import { isFinal, isWaiting, type JsonObject, type Task } from "../hub/types.ts";
import { Failure } from "../parts/Failure.tsx";
import { directoryOf } from "../text/words.ts";

interface Props {
  task: Task;
  hasQuestion: boolean;
  onSent: () => void;
}

export function Composer({ task, hasQuestion, onSent }: Props) {
  const [text, setText] = useDraft(`task.${task.id}`);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<HubError>();
  const { state } = task.status;
  if (hasQuestion) return null;
  const ended = isFinal(state);
  const label = ended ? "Say more: begins a new task in this conversation" : isWaiting(state) ? "Answer" : "Say more: the agent reads it as it works, or next";
  const send = async (event: Event) => {
    event.preventDefault();
    if (text.trim() === "" || busy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      const metadata: JsonObject = {};
      const question = task.metadata?.question;
      if (isWaiting(state) && typeof question === "object" && question !== null && !Array.isArray(question)) {
        metadata.question = question.id;
      }
      const directory = directoryOf(task);
      if (ended && task.agentId !== undefined) metadata.targetAgent = task.agentId;
      if (ended && directory !== undefined) metadata.workingDirectory = directory;
      const result = await sendMessage({
        draft: `task.${task.id}`,
        parts: [{ kind: "text", text }],
        metadata,
        ...(ended ? { contextId: task.contextId } : { taskId: task.id }),
      });
      setText("");
      if (result.kind === "task" && result.id !== task.id) go(taskPath(result.id));
      else onSent();
    } catch (error) {
      setFailure(error instanceof HubError ? error : new HubError("http", String(error)));
    } finally {
      setBusy(false);
    }
  };
  const id = `composer-${task.id}`;
  return (
    <form class="composer" onSubmit={(event) => void send(event)}>
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={2}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(event);
        }}
      />
      {failure && <Failure error={failure} />}
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy || text.trim() === ""}>
          Send <kbd>Ctrl Enter</kbd>
        </button>
      </div>
    </form>
  );
}
