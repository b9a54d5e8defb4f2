// The conversation of a task: messages of its history and entries of its log, in one order.

import type { Message, Task } from "../hub/types.ts";
import { textOf } from "../text/words.ts";
import type { Entry } from "./log.ts";

export type Block =
  | { kind: "user"; key: string; message: Message }
  | { kind: "agent"; key: string; message: Message; time: string }
  | { kind: "artifact"; key: string; entry: Entry & { kind: "artifact" } }
  | { kind: "steps"; key: string; steps: Entry[] };

/** Joins history and log: one lacks times and tools, the other lacks the client's messages. */
export function blocksOf(task: Task, entries: readonly Entry[]): Block[] {
  const blocks: Block[] = [];
  const shown = new Set<string>();
  let next = 0;
  const addEntry = (entry: Entry) => {
    if (entry.kind === "artifact") {
      blocks.push({ kind: "artifact", key: `artifact ${entry.artifact.artifactId}`, entry });
      return;
    }
    if (entry.kind === "message" && entry.state !== "working" && entry.state !== "submitted") {
      shown.add(entry.message.messageId);
      blocks.push({ kind: "agent", key: entry.message.messageId, message: entry.message, time: entry.time });
      return;
    }
    if (entry.kind === "message") shown.add(entry.message.messageId);
    const last = blocks.at(-1);
    if (last?.kind === "steps") last.steps.push(entry);
    else blocks.push({ kind: "steps", key: `steps ${entry.seq}`, steps: [entry] });
  };
  const positions = new Map(
    entries.flatMap((entry, at) => (entry.kind === "message" ? [[entry.message.messageId, at] as const] : [])),
  );
  const addMessage = (message: Message) => {
    if (message.role === "user") {
      blocks.push({ kind: "user", key: message.messageId, message });
      return;
    }
    if (shown.has(message.messageId)) return;
    const at = positions.get(message.messageId);
    if (at === undefined) {
      shown.add(message.messageId);
      blocks.push({ kind: "agent", key: message.messageId, message, time: "" });
      return;
    }
    for (; next <= at; next += 1) addEntry(entries[next]!);
  };
  for (const message of task.history ?? []) addMessage(message);
  for (; next < entries.length; next += 1) addEntry(entries[next]!);
  if (entries.length === 0) {
    for (const artifact of task.artifacts ?? []) {
      blocks.push({
        kind: "artifact",
        key: `artifact ${artifact.artifactId}`,
        entry: { kind: "artifact", seq: 0, artifact, isDone: true },
      });
    }
  }
  const last = task.status.message;
  if (last && !shown.has(last.messageId) && last.role === "agent") {
    blocks.push({ kind: "agent", key: last.messageId, message: last, time: task.status.timestamp });
  }
  return withoutRepeats(blocks);
}

/** Leaves out messages of the agent that say what one of its artifacts says, as its last status does. */
function withoutRepeats(blocks: Block[]): Block[] {
  const results = new Set(
    blocks.flatMap((block) => (block.kind === "artifact" ? [textOf(block.entry.artifact.parts).trim()] : [])),
  );
  results.delete("");
  return blocks.filter((block) => block.kind !== "agent" || !results.has(textOf(block.message.parts).trim()));
}
