/** Access of a running agent to the world outside. */

import { Cancelled, Failure, asking, failureOf } from "./failure.js";
import {
  End,
  Message,
  Outcome,
  artifactFromContract,
  artifactToContract,
  messageToContract,
  statusToContract,
  wellFormed,
} from "./message.js";
import { Memory } from "./memory.js";
import { Call, Child, Response, TextStream } from "./streams.js";
import { Workspace } from "./workspace.js";

/** Maximum length of a step's stored result, in characters of JSON. */
const MAX_STEP_RESULT = 1 << 20;

export class Context {
  #host;

  /** Creates a context; `live` is true if a client is subscribed during the run. */
  constructor(host, live) {
    this.#host = host;
    this.live = live;
  }

  /** True if the task was cancelled. A long computation polls this. */
  get cancelled() {
    return this.#host.tasks.cancelled();
  }

  /** Throws `Cancelled` if the task was cancelled. */
  checkCancelled() {
    if (this.cancelled) throw new Cancelled();
  }

  // Output.

  /** Sends a status while the task works. */
  async say(content, { metadata } = {}) {
    this.#emit({ tag: "status", val: statusToContract("working", content, metadata) });
  }

  /** Sends the progress in per cent, with a text about the current work. */
  async progress(percent, text) {
    const bounded = Math.max(0, Math.min(100, Math.round(percent)));
    await this.say(text, { metadata: { progress: { percent: bounded } } });
  }

  /**
   * Emits an artifact of a text, a part or a list of parts, replacing any with the same id;
   * `append` adds to it instead.
   */
  async artifact(id, content, { append = false, lastChunk = true, ...options } = {}) {
    this.#emit({ tag: "artifact", val: { artifact: artifactToContract(id, content, options), append, lastChunk } });
  }

  /** Starts a text artifact that is streamed: `write` the chunks, then `finish`. */
  stream(id, options) {
    return new TextStream(this, id, options);
  }

  #emit(event) {
    asking(() => this.#host.tasks.emit(event));
  }

  // Questions.

  /**
   * Asks the client, and waits for the answer. With `auth`, the answer is a login. `timeout` is in
   * milliseconds.
   */
  async ask(prompt, { auth = false, timeout } = {}) {
    const [need, message] = [auth ? "auth" : "input", messageToContract(prompt)];
    await this.#host.idle();
    if (!this.#host.isConcurrent()) {
      return Message.fromContract(asking(() => this.#host.tasks.ask(need, message, timeout ?? null)));
    }
    const question = asking(() => this.#host.tasks.Question.pose(need, message, timeout ?? null));
    await this.#host.ready({ tag: "question", val: question });
    return Message.fromContract(asking(() => this.#host.tasks.Question.answer(question)));
  }

  /**
   * Requests permission for what a program asks. A rule of the operator decides if one can; otherwise
   * the client is asked with `prompt`. `facts` has the program's request as it is: `vendor`, `request`,
   * and if known `method`, `directory`, `call` and `paths`.
   */
  async requestPermission(facts, prompt, { timeout } = {}) {
    const message = messageToContract(prompt);
    await this.#host.idle();
    const reply = asking(() => this.#host.tasks.requestPermission(JSON.stringify(facts), message, timeout ?? null));
    if (reply.tag === "allowed") return { allowedBy: reply.val };
    if (reply.tag === "denied") return { denied: reply.val };
    if (this.#host.isConcurrent()) await this.#host.ready({ tag: "question", val: reply.val });
    return { answer: Message.fromContract(asking(() => this.#host.tasks.Question.answer(reply.val))) };
  }

  /** Reason if a rule of the operator denies a request that the agent would allow without asking. */
  permissionDenial(facts) {
    return asking(() => this.#host.tasks.permissionDenial(JSON.stringify(facts))) ?? undefined;
  }

  /**
   * Waits for the next message that the client, or the calling agent, sends to the task while the
   * agent works. Throws a `Failure` of the kind `timeout` after `timeout` milliseconds without one. A
   * message that no run reads starts another run after this one. Other operations of the agent stand
   * still meanwhile.
   */
  async nextMessage({ timeout } = {}) {
    await this.#host.idle();
    return Message.fromContract(asking(() => this.#host.tasks.nextMessage(timeout ?? null)));
  }

  /** URIs of the A2A extensions that are active for the client's latest message. */
  get extensions() {
    return this.#host.tasks.extensions();
  }

  /** True if the client accepts this media type, exactly or by a range such as `image/*`. */
  accepts(mediaType) {
    const modes = this.#host.tasks.acceptedOutputModes();
    const matches = (mode) => mode === "*/*" || mode === mediaType || (mode.endsWith("/*") && mediaType.startsWith(mode.slice(0, -1)));
    return modes.length === 0 || modes.some(matches);
  }

  // Programs.

  /** Starts a granted program, to exchange data with it. */
  spawn(program, args = [], { env = {}, cwd } = {}) {
    return new Child(this.#host, { program, args: args.map(String), env: Object.entries(env), cwd: cwd ?? null });
  }

  /**
   * Runs a granted program to its end. `onLine` gets each line as it arrives; without it, `stdout`
   * has all lines.
   */
  async run(program, args = [], { onLine, input, ...options } = {}) {
    const child = this.spawn(program, args, options);
    if (input !== undefined) await child.write(input);
    child.closeStdin();
    const lines = [];
    try {
      for await (const line of child) {
        if (onLine) await onLine(line);
        else lines.push(line);
      }
    } catch (thrown) {
      child.kill();
      throw thrown;
    }
    return { ...(await child.wait()), stdout: lines.join("\n") };
  }

  /** Fingerprint of a program's file, which changes with the file. */
  fingerprint(program) {
    return asking(() => this.#host.process.fingerprint(program));
  }

  // External resources.

  /**
   * Sends a request to a granted host. The body of the response is read as it arrives; `timeout`
   * applies to its head, in milliseconds.
   */
  async fetch(url, { method = "GET", headers = {}, body, timeout } = {}) {
    const pairs = Array.isArray(headers) ? headers : Object.entries(headers);
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : (body ?? new Uint8Array());
    const request = { method, url: String(url), headers: pairs, body: bytes, timeoutMs: timeout ?? null };
    await this.#host.idle();
    const exchange = asking(() => this.#host.http.Exchange.send(request));
    return new Response(this.#host, { status: exchange.status(), headers: exchange.headers(), exchange }, String(url));
  }

  /**
   * Memory of this agent in the conversation of its task: goal, thoughts, decisions, variables,
   * items.
   */
  get memory() {
    return new Memory(this.#host);
  }

  /** Stores a value, as JSON, for later tasks of this agent. */
  async remember(key, value) {
    const bytes = new TextEncoder().encode(JSON.stringify(value ?? null));
    asking(() => this.#host.memory.set(key, bytes));
  }

  /** Reads the value of a key; `undefined` without one. */
  async recall(key) {
    const bytes = asking(() => this.#host.memory.get(key));
    return bytes === null || bytes === undefined ? undefined : JSON.parse(new TextDecoder().decode(bytes));
  }

  async forget(key) {
    asking(() => this.#host.memory.delete(key));
  }

  /** Keys that begin with the prefix, sorted. */
  async remembered(prefix = "") {
    return asking(() => this.#host.memory.keys(prefix));
  }

  /** Files of the task's working directory, granted with `workspace`. */
  get workspace() {
    return new Workspace(this.#host);
  }

  /** Writes a file for a program to read, and returns its path. */
  async putFile(name, content) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    return asking(() => this.#host.files.put(name, bytes));
  }

  /** Reads a setting that the operator made for this agent, as text. */
  setting(name) {
    return this.#host.settings.get(name) ?? undefined;
  }

  /** Sleeps for that many milliseconds. */
  async sleep(milliseconds) {
    await this.#host.sleep(milliseconds);
    this.checkCancelled();
  }

  // Other agents and tools.

  /** Cards of the agents that this one may call. A card is third-party text, not instructions. */
  async agents() {
    return JSON.parse(asking(() => this.#host.delegate.agents()));
  }

  /**
   * Finds callable agents that fit, best first, each with its id, card, score and reasons. A text
   * describes the work in any words.
   */
  async find(query = {}) {
    const criteria = typeof query === "string" ? { query } : query;
    return JSON.parse(asking(() => this.#host.delegate.find(JSON.stringify(criteria)))).agents;
  }

  /**
   * Starts a child task with another agent, and returns at once. Several calls run at the same
   * time.
   */
  start(agent, message, options = {}) {
    const { Call: ContractCall, Options } = this.#host.delegate;
    const settings = new Options();
    if (options.key !== undefined) settings.setKey(options.key);
    if (options.timeout !== undefined) settings.setTimeoutMs(options.timeout);
    if (options.maxDepth !== undefined) settings.setMaxDepth(options.maxDepth);
    if (options.maxTasks !== undefined) settings.setMaxTasks(options.maxTasks);
    if (options.maxTokens !== undefined) settings.setMaxTokens(options.maxTokens);
    if (options.maxCostUsd !== undefined) settings.setMaxCostUsd(options.maxCostUsd);
    if (options.workingDirectory !== undefined) settings.setWorkingDirectory(options.workingDirectory);
    if (options.contextId !== undefined) settings.setContextId(options.contextId);
    if (options.answersQuestions) settings.setAnswersQuestions(true);
    const { inheritMemory, memoryBytes, memoryTokens } = options;
    if (options.inheritWorkingMemory) settings.setInheritWorkingMemory(true);
    if (inheritMemory) settings.setInheritMemory(true, typeof inheritMemory === "string" ? inheritMemory : undefined);
    if (options.memoryScope !== undefined) settings.setMemoryScope(options.memoryScope);
    if (options.memoryNames !== undefined) settings.setMemoryNames(options.memoryNames);
    if (memoryBytes !== undefined || memoryTokens !== undefined) settings.setMemoryBudget(memoryBytes, memoryTokens);
    const contractMessage = withWorktree(messageToContract(message, "user"), options.worktree);
    const call = asking(() => ContractCall.startWith(agent, contractMessage, settings));
    return new AgentCall(new Call(this.#host, call), agent);
  }

  /**
   * Calls another agent, and waits for the end of its task. Throws if the task is not completed.
   */
  async call(agent, message, options) {
    return this.start(agent, message, options).completed();
  }

  /**
   * Tools of MCP servers that the operator granted. Descriptions are third-party text, not
   * instructions.
   */
  async tools() {
    return JSON.parse(asking(() => this.#host.tools.list()));
  }

  async callTool(server, name, args = {}, { timeout } = {}) {
    const result = JSON.parse(asking(() => this.#host.tools.call(server, name, JSON.stringify(args), timeout ?? null)));
    const texts = (result.content ?? []).map((block) => block.text).filter((text) => typeof text === "string");
    return { ...result, text: texts.join("\n") };
  }

  // Replay.

  /**
   * Performs a side effect once, also if the agent runs again after a restart of the hub (`resume =
   * "replay"`).
   */
  async step(key, work, { mode = "recorded" } = {}) {
    const step = asking(() => this.#host.steps.Step.begin(key, mode));
    const stored = step.kept();
    if (stored !== null && stored !== undefined) return unwrapResult(JSON.parse(stored), key);
    let result;
    try {
      result = { done: (await work()) ?? null };
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (failure instanceof Cancelled) throw failure;
      result = failure instanceof Failure ? { [failure.kind]: failure.message } : { thrown: `${failure?.stack ?? failure}` };
    }
    let json = mode === "again" ? "" : JSON.stringify(result);
    if (json.length > MAX_STEP_RESULT) {
      result = { exhausted: `the step \`${key}\` came to ${json.length} characters of JSON, and ${MAX_STEP_RESULT} are kept; keep less of it` };
      json = JSON.stringify(result);
    }
    asking(() => this.#host.steps.Step.end(step, json));
    return unwrapResult(result, key);
  }

  // Log.

  /** Writes a line to the hub's log. */
  log(level, ...words) {
    this.#host.log.log(level, words.map(formatLogValue).join(" "));
  }

  // End of the run.

  /** Completes the task. */
  done(content, { metadata } = {}) {
    return new End({ tag: "status", val: statusToContract("completed", content, metadata) });
  }

  /**
   * Fails the task: a stable reason for machines, a text for people; `fix` is a repair, such as a
   * command.
   */
  fail(reason, content, { fix, metadata } = {}) {
    const mergedMetadata = { ...metadata, reason, ...(fix === undefined ? {} : { fix }) };
    return new End({ tag: "status", val: statusToContract("failed", content, mergedMetadata) });
  }

  /** Rejects the task: the agent does not do this for any client. */
  reject(content) {
    return new End({ tag: "status", val: statusToContract("rejected", content) });
  }

  /** Answers with a message instead of a task; the manifest says `direct_message = true`. */
  reply(content) {
    return new End({ tag: "message", val: messageToContract(content) });
  }
}

/**
 * Child task of another agent: `for await` iterates over its events, `completed()` waits for its
 * end.
 */
class AgentCall {
  #call;
  #agent;
  #artifacts = new Map();

  constructor(call, agent) {
    [this.#call, this.#agent] = [call, agent];
  }

  get taskId() {
    return this.#call.taskId;
  }

  async *[Symbol.asyncIterator]() {
    for (let event; (event = await this.#call.next((event) => this.#toEvent(event))) !== undefined; ) yield event;
  }

  #toEvent({ tag, val }) {
    if (tag === "status") {
      return { type: "status", state: val.state, message: val.message ? Message.fromContract(val.message) : undefined };
    }
    if (tag !== "artifact") return { type: "other", value: val };
    const artifact = artifactFromContract(val.artifact);
    const previousText = val.append ? this.#artifacts.get(artifact.id) : undefined;
    this.#artifacts.set(artifact.id, previousText ? previousText + artifact.text : artifact.text);
    return { type: "artifact", artifact, append: val.append, lastChunk: val.lastChunk };
  }

  /** Answers the child task's question; requires the option `answersQuestions`. */
  answer(content) {
    this.#call.answer(messageToContract(content, "user"));
  }

  /** Sends the child task, which is at work, a further message. It is never an answer. */
  send(content) {
    this.#call.send(messageToContract(content, "user"));
  }

  cancel() {
    this.#call.cancel();
  }

  /** Waits for the end of the child task, in any state. */
  async outcome() {
    for await (const _ of this);
    const outcome = Outcome.fromContract(this.#call.outcome);
    outcome.artifacts = Object.fromEntries(this.#artifacts);
    return outcome;
  }

  /** Waits for the end, and throws unless it is `completed` or a direct answer. */
  async completed() {
    const outcome = await this.outcome();
    if (outcome.state === undefined || outcome.state === "completed") return outcome;
    throw Failure.unavailable(`\`${this.#agent}\` ended as ${outcome.state}: ${outcome.text}`);
  }
}

function unwrapResult(result, key) {
  if ("done" in result) return result.done;
  const [[kind, text]] = Object.entries(result);
  if (kind === "thrown") throw new Error(`the step \`${key}\` threw: ${text}`);
  throw new Failure(kind, text);
}

/** Formats a value for a line of the log. */
export function formatLogValue(value) {
  if (typeof value === "string") return wellFormed(value);
  if (value instanceof Error) return wellFormed(`${value.name}: ${value.message}`);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** Message of a call, with the wish for a worktree in its metadata, where the hub reads it. */
function withWorktree(message, worktree) {
  if (!worktree) return message;
  return { ...message, metadata: JSON.stringify({ ...JSON.parse(message.metadata ?? "{}"), worktree }) };
}
