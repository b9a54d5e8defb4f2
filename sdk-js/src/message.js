/** Conversion of parts, messages and artifacts between the contract's form and JavaScript's. */

/** Replaces lone surrogates, which the contract's strings cannot contain. */
export const wellFormed = (text) => text.toWellFormed?.() ?? text;

const json = (value) => (value === undefined || value === null ? null : JSON.stringify(value));

function parsed(text) {
  if (text === undefined || text === null) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Converts a part for the contract: a text, or an object with one of `text`, `data`, `bytes` and
 * `url`.
 */
export function partToContract(part) {
  if (typeof part === "string") part = { text: part };
  let content;
  if (typeof part?.text === "string") content = { tag: "text", val: wellFormed(part.text) };
  else if (part?.bytes instanceof Uint8Array) content = { tag: "raw", val: part.bytes };
  else if (typeof part?.url === "string") content = { tag: "url", val: part.url };
  else if (part && part.data !== undefined) content = { tag: "data", val: JSON.stringify(part.data) };
  else throw new TypeError("a part is a string, or an object with one of `text` (a string), `data`, `bytes` (a Uint8Array) and `url` (a string)");
  return {
    content,
    filename: part.filename ?? null,
    mediaType: part.mediaType ?? null,
    metadata: json(part.metadata),
  };
}

export function partFromContract({ content, filename, mediaType, metadata }) {
  const part = {};
  if (content.tag === "text") part.text = content.val;
  else if (content.tag === "raw") part.bytes = content.val;
  else if (content.tag === "url") part.url = content.val;
  else part.data = parsed(content.val);
  if (filename != null) part.filename = filename;
  if (mediaType != null) part.mediaType = mediaType;
  if (metadata != null) part.metadata = parsed(metadata);
  return part;
}

/** Parts of a text, a part, a list of parts or a message. */
export function partsOf(content) {
  if (Array.isArray(content)) return content.map(partToContract);
  if (Array.isArray(content?.parts)) return content.parts.map(partToContract);
  return [partToContract(content)];
}

export const textOf = (parts) => parts.filter((part) => typeof part.text === "string").map((part) => part.text).join("\n");

/** Message of a task, by its client or an agent. */
export class Message {
  constructor({ id = "", role = "agent", parts = [], contextId, taskId, referenceTaskIds = [], extensions = [], metadata }) {
    Object.assign(this, { id, role, parts, contextId, taskId, referenceTaskIds, extensions, metadata });
  }

  /** Text parts, joined. */
  get text() {
    return textOf(this.parts);
  }

  /** Value of the first data part. */
  get data() {
    return this.parts.find((part) => part.data !== undefined)?.data;
  }

  static fromContract(message) {
    return new Message({
      ...message,
      parts: message.parts.map(partFromContract),
      contextId: message.contextId ?? undefined,
      taskId: message.taskId ?? undefined,
      metadata: parsed(message.metadata),
    });
  }
}

export function messageToContract(content, role = "agent") {
  const source = content !== null && typeof content === "object" && !Array.isArray(content) && Array.isArray(content.parts) ? content : {};
  return {
    id: source.id ?? "",
    role: source.role ?? role,
    parts: partsOf(content),
    contextId: source.contextId ?? null,
    taskId: source.taskId ?? null,
    referenceTaskIds: source.referenceTaskIds ?? [],
    extensions: source.extensions ?? [],
    metadata: json(source.metadata),
  };
}

/** Task. */
export class Task {
  constructor(task) {
    this.id = task.id;
    this.contextId = task.contextId;
    this.message = Message.fromContract(task.message);
    this.history = task.history.map(Message.fromContract);
    this.workingDirectory = task.workingDirectory ?? undefined;
    this.metadata = parsed(task.metadata);
  }

  /** Text of the client's message. */
  get text() {
    return this.message.text;
  }
}

export function artifactToContract(id, content, { name, description, extensions = [], metadata, mediaType, filename } = {}) {
  const parts = partsOf(content);
  for (const part of parts) {
    part.mediaType ??= mediaType ?? null;
    part.filename ??= filename ?? null;
  }
  return { id, name: name ?? null, description: description ?? null, parts, extensions, metadata: json(metadata) };
}

export function artifactFromContract(artifact) {
  const parts = artifact.parts.map(partFromContract);
  return { ...artifact, parts, text: textOf(parts), metadata: parsed(artifact.metadata) };
}

export function statusToContract(state, content, metadata) {
  const message = content === undefined || content === null ? null : messageToContract(content);
  return { state, message, metadata: json(metadata) };
}

/** End of a run, or of a child task. */
export class Outcome {
  constructor({ state, message, metadata }) {
    Object.assign(this, { state, message, metadata });
  }

  /** Text of the final message. */
  get text() {
    return this.message?.text ?? "";
  }

  static fromContract({ tag, val }) {
    if (tag === "message") return new Outcome({ message: Message.fromContract(val) });
    const message = val.message ? Message.fromContract(val.message) : undefined;
    return new Outcome({ state: val.state, message, metadata: parsed(val.metadata) });
  }
}

/** End that an agent returns, made by `ctx.done`, `ctx.fail`, `ctx.reject` and `ctx.reply`. */
export class End {
  constructor(contract) {
    this.contract = contract;
  }

  static of(returned) {
    if (returned instanceof End) return returned;
    if (returned === undefined || returned === null) return new End({ tag: "status", val: statusToContract("completed") });
    if (returned instanceof Outcome) {
      const { state, message, metadata } = returned;
      if (state === undefined) return new End({ tag: "message", val: messageToContract(message) });
      return new End({ tag: "status", val: statusToContract(state, message, metadata) });
    }
    return new End({ tag: "status", val: statusToContract("completed", returned) });
  }
}
