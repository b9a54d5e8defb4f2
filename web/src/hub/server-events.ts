// Parser of server-sent events (text/event-stream) from a fetch body.

export interface ServerEvent {
  data: string;
  id?: string;
}

/** Longest event that is accepted, in characters: more than the hub sends. */
const MAX_EVENT = 32 * 1024 * 1024;

/** Splits text into events; keeps an unfinished rest between calls. */
export class ServerEventParser {
  private rest = "";
  private data: string[] = [];
  private id: string | undefined;

  /** Takes the next text and returns the events that it completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    this.rest += text;
    if (this.rest.length > MAX_EVENT) throw new Error("an event is too long");
    let start = 0;
    for (;;) {
      const end = this.rest.indexOf("\n", start);
      if (end < 0) break;
      const line = this.rest.slice(start, this.rest[end - 1] === "\r" ? end - 1 : end);
      start = end + 1;
      const event = this.line(line);
      if (event) events.push(event);
    }
    this.rest = this.rest.slice(start);
    return events;
  }

  private line(line: string): ServerEvent | undefined {
    if (line === "") {
      if (this.data.length === 0) return undefined;
      const event: ServerEvent = { data: this.data.join("\n") };
      if (this.id !== undefined) event.id = this.id;
      this.data = [];
      this.id = undefined;
      return event;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
    return undefined;
  }
}

/** Reads a response body as events. */
export async function* readServerEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const parser = new ServerEventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
