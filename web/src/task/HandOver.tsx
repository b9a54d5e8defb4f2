// Dialog that hands a task over to another agent.

import { useState } from "preact/hooks";
import { useDraft } from "../app/drafts.ts";
import { go, taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { useQuery } from "../hub/use-query.ts";
import type { Agent, Task } from "../hub/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { visibleText } from "../text/visible.ts";
import { Failure } from "../parts/Failure.tsx";

export function HandOver({ task, onClose }: { task: Task; onClose: () => void }) {
  const agents = useQuery("agents", (abort) => call<Agent[]>("hub/agents/list", { includeHealth: true }, abort), {
    concerns: (changes) => changes.agents,
  });
  const others = (agents.data ?? []).filter((it) => it.id !== task.agentId && !it.unlisted);
  const [chosen, setChosen] = useState("");
  const [note, setNote] = useDraft(`handoff.${task.id}`);
  const [failure, setFailure] = useState<HubError>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (chosen === "") return;
    setBusy(true);
    setFailure(undefined);
    try {
      const next = await call<Task>("hub/tasks/handoff", {
        taskId: task.id,
        agentId: chosen,
        ...(note.trim() === "" ? {} : { note }),
      });
      setNote("");
      onClose();
      go(taskPath(next.id));
    } catch (error) {
      setFailure(error instanceof HubError ? error : new HubError("http", String(error)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title="Hand this task over" onClose={onClose}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        <div class="field">
          <label for="handoff-agent">Agent that goes on</label>
          <select id="handoff-agent" required value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
            <option value="">Choose</option>
            {others.map((agent) => (
              <option key={agent.id} value={agent.id}>
                {visibleText(agent.name === agent.id ? agent.id : `${agent.name} (${agent.id})`)}
                {agent.health?.status === "unhealthy" ? ", unhealthy" : ""}
              </option>
            ))}
          </select>
        </div>
        <div class="field">
          <label for="handoff-note">Words to that agent (optional)</label>
          <textarea id="handoff-note" rows={3} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </div>
        <p class="muted">The other agent gets the conversation. This task is canceled once the new one has its turn.</p>
        {failure && <Failure error={failure} />}
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy || chosen === ""}>
            Hand over
          </button>
          <button type="button" onClick={onClose}>
            Back
          </button>
        </div>
      </form>
    </Dialog>
  );
}
