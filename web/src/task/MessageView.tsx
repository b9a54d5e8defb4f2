// A message or an artifact in the conversation.

import { useMemo } from "preact/hooks";
import { Exact, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import type { Artifact, Json, Message, Part } from "../hub/types.ts";
import { PartView } from "./PartView.tsx";

/** True for data that the page shows elsewhere: choices and details of a question. */
function isControl(part: Part): boolean {
  if (part.kind !== "data") return false;
  const data: Json = part.data;
  if (typeof data !== "object" || data === null || Array.isArray(data)) return false;
  return "choices" in data || "form" in data || "toolCall" in data || "tool" in data;
}

export function UserMessage({ message }: { message: Message }) {
  return (
    <article class="message message-user" aria-label="Your message">
      <p class="message-head">You</p>
      <div class="message-body">
        {message.parts.map((part, at) => (
          <PartView key={at} part={part} isUser />
        ))}
      </div>
    </article>
  );
}

interface AgentMessageProps {
  message: Message;
  agent: string;
  time: string;
}

export function AgentMessage({ message, agent, time }: AgentMessageProps) {
  // The same element again lets Preact skip it while another text grows.
  return useMemo(() => <Body message={message} agent={agent} time={time} />, [message, agent, time]);
}

function Body({ message, agent, time }: AgentMessageProps) {
  const parts = message.parts.filter((part) => !isControl(part));
  if (parts.length === 0 || parts.every((part) => part.kind === "text" && part.text.trim() === "")) return null;
  return (
    <article class="message" aria-label={`Message of ${agent}`}>
      <p class="message-head">
        <Exact text={agent} />
        {time !== "" && (
          <span class="muted">
            <Time time={time} />
          </span>
        )}
      </p>
      <div class="message-body">
        {parts.map((part, at) => (
          <PartView key={at} part={part} />
        ))}
      </div>
    </article>
  );
}

export function ArtifactView({ artifact, isGrowing }: { artifact: Artifact; isGrowing: boolean }) {
  if (artifact.parts.length === 0) return null;
  const name = artifact.name ?? artifact.artifactId;
  return (
    <article class="message message-artifact" aria-label={`Result: ${name}`} aria-busy={isGrowing}>
      <p class="message-head">
        <span>
          <Prose text={name} />
        </span>
        <span class="muted">{isGrowing ? "growing" : "result"}</span>
      </p>
      {artifact.description !== undefined && (
        <p class="muted">
          <Prose text={artifact.description} />
        </p>
      )}
      <div class="message-body">
        {artifact.parts.map((part, at) => (
          <PartView key={at} part={part} />
        ))}
      </div>
    </article>
  );
}
