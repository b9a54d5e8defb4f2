// Sends messages. A message that is sent again after a failure keeps its id: the hub then finds
// the earlier task.

import { read, write } from "../app/storage.ts";
import { call } from "./call.ts";
import { HubError } from "./request.ts";
import type { JsonObject, Message, Part, Task } from "./types.ts";

export interface Outgoing {
  /** Name of the draft, which remembers the id until the hub has the message. */
  draft: string;
  parts: Part[];
  metadata: JsonObject;
  contextId?: string;
  taskId?: string;
}

/** Text that identifies a message's content, short enough to store. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes.slice(0, 12)].map((it) => it.toString(16).padStart(2, "0")).join("");
}

/** Sends a message and returns the task at once, without waiting for its end. */
export async function sendMessage(outgoing: Outgoing): Promise<Task | Message> {
  const { draft, parts, metadata, contextId, taskId } = outgoing;
  const key = `message.${draft}`;
  const content = await digest(JSON.stringify([parts, metadata, contextId, taskId]));
  const [storedContent, storedId] = read(key).split(" ");
  const messageId = storedContent === content && storedId ? storedId : crypto.randomUUID();
  write(key, `${content} ${messageId}`);
  const message: Message = {
    kind: "message",
    messageId,
    role: "user",
    parts,
    metadata,
    ...(contextId === undefined ? {} : { contextId }),
    ...(taskId === undefined ? {} : { taskId }),
  };
  try {
    const result = await call<Task | Message>("message/send", { message, configuration: { blocking: false } });
    write(key, "");
    return result;
  } catch (error) {
    // A refusal is final: the next attempt is a new message.
    if (error instanceof HubError && error.kind === "rpc" && !error.isTemporary) write(key, "");
    throw error;
  }
}
