// Actions on a task: cancel, retry, hand over.

import { useState } from "preact/hooks";
import { notify } from "../app/announce.ts";
import { useShortcuts } from "../app/keys.ts";
import { go, taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { sendMessage } from "../hub/send.ts";
import { isFinal, type JsonObject, type Task } from "../hub/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { firstRequest } from "../text/words.ts";
import { HandOver } from "./HandOver.tsx";

/** Metadata of a message that a new one keeps. */
const KEPT = ["targetAgent", "targetSkill", "targetVersion", "workingDirectory", "additionalDirectories", "worktree", "model", "effort", "allowedTools", "mcpServers", "permissions", "budget"];

async function retry(task: Task): Promise<void> {
  const request = firstRequest(task);
  if (!request) throw new HubError("http", "The task has no message that could be sent again.");
  const metadata: JsonObject = {};
  for (const name of KEPT) if (request.metadata?.[name] !== undefined) metadata[name] = request.metadata[name];
  if (metadata.targetAgent === undefined && metadata.targetSkill === undefined && task.agentId) metadata.targetAgent = task.agentId;
  const result = await sendMessage({ draft: `retry.${task.id}`, parts: request.parts, metadata });
  if (result.kind === "task") go(taskPath(result.id));
}

export function TaskActions({ task, onChange }: { task: Task; onChange: () => void }) {
  const [asks, setAsks] = useState<"cancel" | "handoff">();
  const [busy, setBusy] = useState(false);
  const ended = isFinal(task.status.state);
  const isSubTask = typeof task.metadata?.parentTaskId === "string";
  const canHandOver = task.status.state !== "completed" && !isSubTask;
  const run = async (what: string, action: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await action();
      setAsks(undefined);
      onChange();
    } catch (error) {
      notify(`${what}: ${error instanceof Error ? error.message : String(error)}`, true);
    } finally {
      setBusy(false);
    }
  };
  useShortcuts("Actions", [
    { key: "c", text: "Cancel the task", run: () => !ended && setAsks("cancel") },
    { key: "R", text: "Retry: send the first message again", run: () => ended && void run("Not sent", () => retry(task)) },
    { key: "h", text: "Hand over to another agent", run: () => canHandOver && setAsks("handoff") },
  ]);
  return (
    <div class="buttons task-actions">
      {!ended && (
        <button type="button" disabled={busy} onClick={() => setAsks("cancel")}>
          Cancel…
        </button>
      )}
      {ended && (
        <button type="button" disabled={busy} onClick={() => void run("Not sent", () => retry(task))}>
          Retry
        </button>
      )}
      {canHandOver && (
        <button type="button" disabled={busy} onClick={() => setAsks("handoff")}>
          Hand over…
        </button>
      )}
      {asks === "cancel" && (
        <Dialog title="Cancel this task?" onClose={() => setAsks(undefined)}>
          <p>Its agent is stopped, and so are all its sub-tasks. Files that it changed stay as they are.</p>
          <div class="buttons">
            <button type="button" class="danger" disabled={busy} onClick={() => void run("Not canceled", () => call("tasks/cancel", { id: task.id }))}>
              Cancel the task
            </button>
            <button type="button" onClick={() => setAsks(undefined)}>
              Let it go on
            </button>
          </div>
        </Dialog>
      )}
      {asks === "handoff" && <HandOver task={task} onClose={() => setAsks(undefined)} />}
    </div>
  );
}
