/** Streams: lines of a program, bodies of responses, text artifacts. */

import { Failure, asking } from "./failure.js";

/** Maximum length of a line in characters; a longer one is an error. */
const MAX_LINE = 8 << 20;

/** Thresholds for sending buffered text: its length, and its age. */
const FLUSH_LENGTH = 512;
const FLUSH_AGE_MS = 100;

/** Splits chunks of bytes into lines. */
export class LineBuffer {
  #decoder = new TextDecoder();
  #rest = "";
  #started = false;
  #lineEnds;
  lines = [];

  /** `ofEvents` follows the line rules of server-sent events. */
  constructor({ ofEvents = false } = {}) {
    this.#lineEnds = ofEvents ? new EventLineEnds() : undefined;
  }

  push(bytes) {
    const piece = this.#decoder.decode(bytes, { stream: true });
    const text = this.#rest + (this.#lineEnds?.unify(piece) ?? piece);
    const lines = text.split("\n");
    this.#rest = lines.pop();
    if (this.#rest.length > MAX_LINE) throw Failure.exhausted(`a line has more than ${MAX_LINE} characters`);
    for (const line of lines) this.#add(line);
  }

  end() {
    this.#rest += this.#decoder.decode();
    if (this.#rest !== "") this.#add(this.#rest);
    this.#rest = "";
  }

  /** Adds a line without its carriage return, and the first one without a byte order mark. */
  #add(line) {
    if (!this.#started && line.startsWith("\ufeff")) line = line.slice(1);
    this.#started = true;
    this.lines.push(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}

/**
 * Line endings of server-sent events: CRLF, LF or CR, after an optional byte order mark (WHATWG
 * HTML, section 9.2.6).
 */
class EventLineEnds {
  #isFirst = true;
  #isAfterReturn = false;

  /** Replaces each line ending by a line feed. */
  unify(piece) {
    if (piece === "") return piece;
    let text = this.#isFirst ? piece.replace(/^\ufeff/, "") : piece;
    if (this.#isAfterReturn) text = text.replace(/^\n/, "");
    this.#isFirst = false;
    this.#isAfterReturn = piece.endsWith("\r");
    return text.replace(/\r\n?/g, "\n");
  }
}

/**
 * Text artifact that is streamed. Chunks are sent if a client is subscribed; `finish` replaces them
 * by the whole text.
 */
export class TextStream {
  #ctx;
  #id;
  #options;
  #unsent = "";
  #written = "";
  #bufferedSince;
  #started = false;

  constructor(ctx, id, options) {
    [this.#ctx, this.#id, this.#options] = [ctx, id, options];
  }

  /** Adds text, and sends the buffered text if it is large or old enough. */
  async write(text) {
    this.#written += text;
    if (!this.#ctx.live) return;
    this.#unsent += text;
    this.#bufferedSince ??= Date.now();
    if (!this.#started || this.#unsent.length >= FLUSH_LENGTH || Date.now() - this.#bufferedSince >= FLUSH_AGE_MS) await this.flush();
  }

  /** Sends the buffered text. Half of a surrogate pair at its end waits for the other half. */
  async flush() {
    const half = this.#unsent.match(/[\ud800-\udbff]$/)?.[0] ?? "";
    const text = this.#unsent.slice(0, this.#unsent.length - half.length);
    if (text === "") return;
    this.#unsent = half;
    this.#bufferedSince = half ? Date.now() : undefined;
    const append = this.#started;
    this.#started = true;
    await this.#ctx.artifact(this.#id, text, { ...this.#options, append, lastChunk: false });
  }

  /** Ends the artifact with the given text, or else with all written text. */
  async finish(text = this.#written) {
    await this.#ctx.artifact(this.#id, text, this.#options);
    return text;
  }
}

/**
 * Running program. `for await` iterates over its lines. It is killed at the task's end at the
 * latest.
 */
export class Child {
  #host;
  #child;
  #lines = new LineBuffer();
  #stderr = "";
  #decoder = new TextDecoder();
  #exit;

  constructor(host, command) {
    this.#host = host;
    this.#child = asking(() => host.process.Child.spawn(command));
  }

  get origin() {
    return { tag: "child", val: this.#child };
  }

  /** True if a line is buffered. */
  get isReady() {
    return this.#lines.lines.length > 0 || this.#exit !== undefined;
  }

  /** Next line of its output; `undefined` once it has ended. */
  async nextLine({ timeout } = {}) {
    while (this.#lines.lines.length === 0 && this.#exit === undefined) {
      if (timeout === undefined) await this.#host.ready(this.origin);
      const output = asking(() => this.#child.next(timeout ?? null));
      if (output.tag === "stdout") this.#lines.push(output.val);
      else if (output.tag === "stderr") this.#stderr = (this.#stderr + this.#decoder.decode(output.val, { stream: true })).slice(-8192);
      else {
        this.#exit = output.val;
        this.#lines.end();
      }
    }
    return this.#lines.lines.shift();
  }

  async *[Symbol.asyncIterator]() {
    for (let line; (line = await this.nextLine()) !== undefined; ) yield line;
  }

  /** Writes to its standard input. Blocks while the program does not read. */
  async write(data) {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    for (let offset = 0; offset < bytes.length; offset += 65536) asking(() => this.#child.writeStdin(bytes.slice(offset, offset + 65536)));
  }

  closeStdin() {
    this.#child.closeStdin();
  }

  interrupt() {
    this.#child.interrupt();
  }

  /** Kills the program and its descendants. */
  kill() {
    this.#child.kill();
  }

  /** Waits for its exit. */
  async wait() {
    while (this.#exit === undefined) {
      this.#lines.lines.length = 0;
      await this.nextLine();
    }
    const { tag, val } = this.#exit;
    return {
      code: tag === "code" ? val : undefined,
      signal: tag === "signal" ? val : undefined,
      ok: tag === "code" && val === 0,
      stderr: this.#stderr.trimEnd(),
    };
  }
}

/** HTTP response, with those parts of the web's `Response` that an agent needs. */
export class Response {
  #host;
  #exchange;
  #bytes;

  constructor(host, { status, headers, body, exchange }, url) {
    [this.#host, this.#exchange, this.#bytes] = [host, exchange, body];
    this.url = url;
    this.status = status;
    this.ok = status >= 200 && status < 300;
    this.headers = new Headers(headers);
  }

  get origin() {
    return { tag: "exchange", val: this.#exchange };
  }

  /** Chunks of the body as they arrive. */
  async *[Symbol.asyncIterator]() {
    if (this.#exchange === undefined) {
      const bytes = this.#bytes;
      this.#bytes = new Uint8Array();
      if (bytes?.length) yield bytes;
      return;
    }
    for (;;) {
      await this.#host.ready(this.origin);
      const piece = asking(() => this.#exchange.next(null));
      if (piece === null || piece === undefined) return;
      yield piece;
    }
  }

  /** Lines of the body. */
  async *lines(options) {
    const buffer = new LineBuffer(options);
    for await (const piece of this) {
      buffer.push(piece);
      yield* buffer.lines.splice(0);
    }
    buffer.end();
    yield* buffer.lines;
  }

  /** Server-sent events of the body, as language models stream them. */
  async *events() {
    let [event, data, id] = ["message", [], undefined];
    for await (const line of this.lines({ ofEvents: true })) {
      if (line === "") {
        if (data.join("\n")) yield { event, data: data.join("\n"), id };
        [event, data, id] = ["message", [], undefined];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
      else if (field === "id") id = value;
    }
  }

  async bytes() {
    const pieces = [];
    let length = 0;
    for await (const piece of this) {
      pieces.push(piece);
      length += piece.length;
    }
    const buffer = new Uint8Array(length);
    let offset = 0;
    for (const piece of pieces) {
      buffer.set(piece, offset);
      offset += piece.length;
    }
    return buffer;
  }

  async text() {
    return new TextDecoder().decode(await this.bytes());
  }

  async json() {
    return JSON.parse(await this.text());
  }

  /** Closes the connection without reading the rest of the body. */
  close() {
    this.#exchange?.[Symbol.dispose]?.();
  }
}

/** Headers by case-insensitive name; several with one name are joined by a comma. */
export class Headers {
  #values = new Map();

  constructor(pairs) {
    for (const [name, value] of pairs) {
      const key = name.toLowerCase();
      this.#values.set(key, this.#values.has(key) ? `${this.#values.get(key)}, ${value}` : value);
    }
  }

  get(name) {
    return this.#values.get(name.toLowerCase()) ?? null;
  }

  has(name) {
    return this.#values.has(name.toLowerCase());
  }

  [Symbol.iterator]() {
    return this.#values[Symbol.iterator]();
  }
}

/** Child task of another agent. `for await` iterates over its events. */
export class Call {
  #host;
  #call;
  #outcome;
  artifacts = new Map();

  constructor(host, call) {
    [this.#host, this.#call] = [host, call];
  }

  get origin() {
    return { tag: "call", val: this.#call };
  }

  get isReady() {
    return this.#outcome !== undefined;
  }

  get taskId() {
    return this.#call.taskId();
  }

  /** Next event; `undefined` once the task has ended. */
  async next(read) {
    if (this.#outcome !== undefined) return undefined;
    await this.#host.ready(this.origin);
    const { tag, val } = asking(() => this.#call.next(null));
    if (tag === "finished") {
      this.#outcome = val;
      return undefined;
    }
    return read(val);
  }

  answer(message) {
    asking(() => this.#call.answer(message));
  }

  send(message) {
    asking(() => this.#call.send(message));
  }

  /** Cancels the child task, and returns once it has ended. */
  cancel() {
    this.#call.cancel();
  }

  get outcome() {
    return this.#outcome;
  }
}
