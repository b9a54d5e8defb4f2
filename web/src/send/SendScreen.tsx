// Sends a message to an agent. What is typed stays until the hub has it.

import { useState } from "preact/hooks";
import { useDraft } from "../app/drafts.ts";
import { Link } from "../app/Link.tsx";
import { address, go, taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { sendMessage } from "../hub/send.ts";
import { useQuery } from "../hub/use-query.ts";
import type { Agent, JsonObject, Message } from "../hub/types.ts";
import { Failure } from "../parts/Failure.tsx";
import { PartView } from "../task/PartView.tsx";
import { AgentPicker, Repair, offered } from "./AgentPicker.tsx";
import { Attachments, readFiles } from "./Attachments.tsx";
import { recentDirectories, rememberDirectory } from "./directories.ts";
import { NO_OPTIONS, SendOptions, type Options } from "./SendOptions.tsx";

export function SendScreen() {
  const agents = useQuery("agents", (abort) => call<Agent[]>("hub/agents/list", { includeHealth: true }, abort), {
    concerns: (changes) => changes.agents,
  });
  const directories = useQuery("directories", recentDirectories, { concerns: () => false });
  const [storedAgent, setStoredAgent] = useDraft("send.agent");
  const [directory, setDirectory] = useDraft("send.directory");
  const [text, setText] = useDraft("send");
  const [options, setOptions] = useState<Options>(NO_OPTIONS);
  const [files, setFiles] = useState<File[]>([]);
  const [failure, setFailure] = useState<HubError>();
  const [reply, setReply] = useState<Message>();
  const [busy, setBusy] = useState(false);
  const asked = address.value.query.get("agent") ?? storedAgent;
  const list = agents.data ?? [];
  const agentId = list.some((it) => it.id === asked) || list.length === 0 ? asked : (offered(list)[0]?.id ?? "");
  const agent = list.find((it) => it.id === agentId);
  const chooseAgent = (id: string) => {
    setStoredAgent(id);
    setOptions({ ...options, model: "", effort: "" });
    if (address.value.query.has("agent")) go("send", { replace: true });
  };
  const canSend = (text.trim() !== "" || files.length > 0) && agentId !== "" && !busy;
  const send = async (event: Event) => {
    event.preventDefault();
    if (!canSend) return;
    setBusy(true);
    setFailure(undefined);
    setReply(undefined);
    try {
      const metadata: JsonObject = { targetAgent: agentId };
      if (directory.trim() !== "") metadata.workingDirectory = directory.trim();
      if (options.worktree) metadata.worktree = true;
      for (const name of ["model", "effort", "permissions"] as const) if (options[name] !== "") metadata[name] = options[name];
      const parts = [...(text.trim() === "" ? [] : [{ kind: "text" as const, text }]), ...(await readFiles(files))];
      const result = await sendMessage({ draft: "send", parts, metadata });
      if (directory.trim() !== "") rememberDirectory(directory.trim());
      setStoredAgent(agentId);
      setText("");
      setFiles([]);
      if (result.kind === "task") go(taskPath(result.id));
      else setReply(result);
    } catch (error) {
      setFailure(error instanceof HubError ? error : new HubError("http", String(error)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="screen send">
      <header class="screen-head">
        <h1>Send</h1>
      </header>
      {agents.error && <Failure error={agents.error} onRetry={agents.refresh} />}
      <form class="send-form" onSubmit={(event) => void send(event)}>
        <AgentPicker agents={list} chosen={agentId} onChoose={chooseAgent} />
        <div class="send-main">
          <Repair agent={agent} />
          <div class="field">
            <label for="send-directory">Working directory on the machine of the hub</label>
            <input
              id="send-directory"
              type="text"
              list="send-directories"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              placeholder="/home/you/project"
              value={directory}
              onInput={(event) => setDirectory(event.currentTarget.value)}
            />
            <datalist id="send-directories">
              {(directories.data ?? []).map((it) => (
                <option key={it} value={it} />
              ))}
            </datalist>
          </div>
          <div class="field">
            <label for="send-text">Message</label>
            <textarea
              id="send-text"
              rows={8}
              value={text}
              placeholder={example(agent)}
              onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send(event);
              }}
            />
          </div>
          <Attachments files={files} setFiles={setFiles} />
          <SendOptions agent={agent} options={options} setOptions={setOptions} hasDirectory={directory.trim() !== ""} />
          {failure && <Failure error={failure} />}
          <div class="buttons">
            <button type="submit" class="primary" disabled={!canSend}>
              {busy ? "Sending" : "Send"} <kbd>Ctrl Enter</kbd>
            </button>
            <span class="muted">What you type is kept until the hub has it.</span>
          </div>
          {reply && (
            <section class="message" aria-label="Answer" role="status">
              <p class="message-head">The agent answered with a message, without a task</p>
              {reply.parts.map((part, at) => (
                <PartView key={at} part={part} />
              ))}
              {reply.taskId !== undefined && <Link to={taskPath(reply.taskId)}>Its log</Link>}
            </section>
          )}
        </div>
      </form>
    </div>
  );
}

function example(agent: Agent | undefined): string {
  const examples = agent?.card.skills?.flatMap((skill) => skill.examples ?? []) ?? [];
  return examples[0] === undefined ? "" : `For example: ${examples[0]}`;
}
