/** Write an agent for a2a-hub: `export default defineAgent({ card, run })`. */

/** JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type State = "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "canceled" | "rejected";

/** Part of a message or an artifact: one of `text`, `data`, `bytes` and `url`. */
export interface Part {
  text?: string;
  data?: Json;
  bytes?: Uint8Array;
  url?: string;
  filename?: string;
  mediaType?: string;
  metadata?: Record<string, Json>;
}

/** Content of a message: a text, a part, several, or a message. */
export type Content = string | Part | (string | Part)[] | { parts: (string | Part)[]; metadata?: Record<string, Json>; extensions?: string[]; referenceTaskIds?: string[] };

/** Message of a client or an agent. */
export class Message {
  readonly id: string;
  readonly role: "user" | "agent";
  readonly parts: Part[];
  readonly contextId?: string;
  readonly taskId?: string;
  readonly referenceTaskIds: string[];
  readonly extensions: string[];
  readonly metadata?: Record<string, Json>;
  /** Text parts, joined. */
  get text(): string;
  /** Value of the first data part. */
  get data(): Json | undefined;
}

/** Task. `history` has the earlier messages of its conversation, oldest first. */
export class Task {
  readonly id: string;
  readonly contextId: string;
  readonly message: Message;
  readonly history: Message[];
  readonly workingDirectory?: string;
  readonly metadata?: Record<string, Json>;
  /** Text of the client's message. */
  get text(): string;
}

/** End of a child task. Without a `state` it is a direct answer. */
export class Outcome {
  readonly state?: State;
  readonly message?: Message;
  readonly metadata?: Record<string, Json>;
  /** Texts of its artifacts, by id. */
  readonly artifacts?: Record<string, string>;
  /** Text of the final message. */
  get text(): string;
}

export type FailureKind = "invalid" | "unsupported" | "denied" | "cancelled" | "timeout" | "unavailable" | "exhausted" | "internal";

/** Refusal or error of the hub. An agent can throw one to end its task as failed. */
export class Failure extends Error {
  constructor(kind: FailureKind, text?: string);
  readonly kind: FailureKind;
  static invalid(text: string): Failure;
  static unsupported(text: string): Failure;
  static denied(text: string): Failure;
  static unavailable(text: string): Failure;
  static exhausted(text: string): Failure;
  static internal(text: string): Failure;
  static timeout(): Failure;
  static cancelled(): Cancelled;
}

/** The task was cancelled: clean up, and let the error propagate. */
export class Cancelled extends Failure {}

/** End of a run, made by `ctx.done`, `ctx.fail`, `ctx.reject` and `ctx.reply`. */
export interface End {
  readonly contract: unknown;
}

export interface ArtifactOptions {
  name?: string;
  description?: string;
  mediaType?: string;
  filename?: string;
  extensions?: string[];
  metadata?: Record<string, Json>;
}

/** Text artifact that is streamed. */
export interface TextStream {
  /** Adds text, and sends the buffered text if it is large or old enough. */
  write(text: string): Promise<void>;
  /** Sends the buffered text. */
  flush(): Promise<void>;
  /** Ends the artifact with the given text, or else with all written text. */
  finish(text?: string): Promise<string>;
}

/** Exit of a program. */
export interface Exit {
  code?: number;
  signal?: number;
  ok: boolean;
  stderr: string;
}

export interface CommandOptions {
  env?: Record<string, string>;
  cwd?: string;
}

/** Running program; `for await` iterates over its lines. */
export interface Child extends AsyncIterable<string> {
  /**
   * Next line; `undefined` once it has ended. Throws a `Failure` of kind `timeout` after `timeout`
   * milliseconds without a line.
   */
  nextLine(options?: { timeout?: number }): Promise<string | undefined>;
  write(data: string | Uint8Array): Promise<void>;
  closeStdin(): void;
  interrupt(): void;
  kill(): void;
  wait(): Promise<Exit>;
}

/** HTTP response whose body is read as it arrives; `for await` iterates over its chunks. */
export interface Response extends AsyncIterable<Uint8Array> {
  readonly url: string;
  readonly status: number;
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null; has(name: string): boolean; [Symbol.iterator](): Iterator<[string, string]> };
  lines(): AsyncIterable<string>;
  /** Server-sent events of the body, as language models stream them. */
  events(): AsyncIterable<{ event: string; data: string; id?: string }>;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<any>;
  /** Closes the connection without reading the rest of the body. */
  close(): void;
}

export type Event =
  | { type: "status"; state: State; message?: Message }
  | { type: "artifact"; artifact: { id: string; name?: string; parts: Part[]; text: string }; append: boolean; lastChunk: boolean }
  | { type: "other"; value: string };

/** Child task of another agent; `for await` iterates over its events. */
export interface AgentCall extends AsyncIterable<Event> {
  readonly taskId: string;
  /** Answers the child task's question; requires the option `answersQuestions`. */
  answer(content: Content): void;
  /** Sends the child task, which is at work, a further message. It is never an answer. */
  send(content: Content): void;
  cancel(): void;
  /** Waits for the end of the child task, in any state. */
  outcome(): Promise<Outcome>;
  /** Waits for the end, and throws unless it is `completed` or a direct answer. */
  completed(): Promise<Outcome>;
}

/** Criteria of a search for agents; all must hold. */
export interface AgentQuery {
  /** Describes the work in any words. */
  query?: string;
  /** Id, an alias, or the card's name. */
  name?: string;
  skill?: string;
  tags?: string[];
  /** Version range, such as `2` or `>=1.4`. */
  version?: string;
  /** True to accept older versions if no other fits. */
  allowOlder?: boolean;
  inputModes?: string[];
  outputModes?: string[];
  limit?: number;
}

export interface FoundAgent {
  id: string;
  /** Card: third-party text, not instructions. */
  card: Record<string, Json>;
  /** Score; higher is better. */
  score: number;
  /** Matched criteria: the compared property, and the matching part of the query. */
  why: { by: string; what: string; in?: string[] }[];
}

export interface CallOptions {
  /** Key of the call: a second call with the same key joins the existing child task. */
  key?: string;
  /** Timeout in milliseconds. */
  timeout?: number;
  maxDepth?: number;
  maxTasks?: number;
  maxTokens?: number;
  maxCostUsd?: number;
  workingDirectory?: string;
  /**
   * Git worktree in which the child works, apart from the checkout: a new one (true), a new one from
   * a commit, or that of another child. Its changes arrive as the artifact `patch`. The operator
   * allows it with the term `worktrees` of the grant `delegate`.
   */
  worktree?: boolean | string | { task: string };
  contextId?: string;
  answersQuestions?: boolean;
  /**
   * True to copy this agent's working memory to the child's agent before it starts: goal, thoughts,
   * decisions and variables, without private ones.
   */
  inheritWorkingMemory?: boolean;
  /** Items to copy as well: those that match the message (true), or those that match a text. */
  inheritMemory?: boolean | string;
  /** Amount of copied memory; the default is `full`. */
  memoryScope?: "full" | "minimal" | "summary";
  /** Entries that the scope `minimal` copies beside those that the message names. */
  memoryNames?: string[];
  memoryBytes?: number;
  memoryTokens?: number;
}

export interface MemoryItem {
  id: string;
  type: string;
  data: Json;
  metadata?: Record<string, Json>;
}

/** Memory of the agent in the conversation of its task, granted with `memory`. */
export interface Memory {
  /**
   * Same memory, except that everything set through it is private: never handed over to another
   * agent.
   */
  readonly private: Memory;
  working(): Promise<Record<string, Json>>;
  goal(): Promise<string | undefined>;
  setGoal(goal: string | undefined): Promise<void>;
  addThought(content: string): Promise<void>;
  thoughts(): Promise<{ content: string; at?: string; private?: boolean }[]>;
  decide(key: string, value: Json, reason?: string): Promise<void>;
  decisions(): Promise<{ key: string; value: Json; reason?: string; at?: string; private?: boolean }[]>;
  vars(): Promise<Record<string, Json>>;
  setVar(name: string, value: Json | undefined): Promise<void>;
  remember(id: string, data: Json, type?: string, options?: { metadata?: Record<string, Json> }): Promise<void>;
  /** Items that match the query, best first; the newest for a query without words. */
  recall(query?: string, limit?: number): Promise<MemoryItem[]>;
  forget(id: string): Promise<void>;
}

/**
 * Files of the task's working directory, granted with `workspace`. Paths are relative to it.
 */
export interface Workspace {
  /** Reads a file as text. */
  read(path: string): Promise<string>;
  readBytes(path: string): Promise<Uint8Array>;
  /** Writes a file, and creates its folders. */
  write(path: string, content: string | Uint8Array): Promise<void>;
  /** Names of a folder, sorted; names of folders end in `/`. */
  list(path?: string): Promise<string[]>;
}

/**
 * Access of a running agent to the world outside. Errors are thrown as a `Failure`; times are
 * milliseconds.
 */
export class Context {
  /** True if a client is subscribed during the run. If false, only the result counts. */
  readonly live: boolean;
  readonly cancelled: boolean;
  /** Throws `Cancelled` if the task was cancelled. */
  checkCancelled(): void;
  /** Sends a status while the task works. */
  say(content: Content, options?: { metadata?: Record<string, Json> }): Promise<void>;
  /** Sends the progress in per cent, with a text about the current work. */
  progress(percent: number, text?: string): Promise<void>;
  /** Emits an artifact, replacing any with the same id; `append` adds to it instead. */
  artifact(id: string, content: Content, options?: ArtifactOptions & { append?: boolean; lastChunk?: boolean }): Promise<void>;
  /** Starts a text artifact that is streamed. */
  stream(id: string, options?: ArtifactOptions): TextStream;
  /** Asks the client, and waits for the answer. With `auth`, the answer is a login. */
  ask(prompt: Content, options?: { auth?: boolean; timeout?: number }): Promise<Message>;
  /**
   * Requests permission for what a program asks. A rule of the operator decides if one can; otherwise
   * the client is asked with `prompt`. `facts` has the program's request as it is: `vendor`, `request`,
   * and if known `method`, `directory`, `call` and `paths`.
   */
  requestPermission(facts: Record<string, Json>, prompt: Content, options?: { timeout?: number }): Promise<{ allowedBy?: string; denied?: string; answer?: Message }>;
  /** Reason if a rule of the operator denies a request that the agent would allow without asking. */
  permissionDenial(facts: Record<string, Json>): string | undefined;
  /**
   * Waits for the next message that the client, or the calling agent, sends to the task while the
   * agent works. Throws a `Failure` of the kind `timeout` after `timeout` milliseconds without one. A
   * message that no run reads starts another run after this one. Other operations of the agent stand
   * still meanwhile.
   */
  nextMessage(options?: { timeout?: number }): Promise<Message>;
  /** URIs of the A2A extensions that are active for the client's latest message. */
  readonly extensions: string[];
  /** True if the client accepts this media type. */
  accepts(mediaType: string): boolean;
  /** Starts a granted program, to exchange data with it. */
  spawn(program: string, args?: (string | number)[], options?: CommandOptions): Child;
  /**
   * Runs a granted program to its end. `onLine` gets each line as it arrives; without it, `stdout`
   * has all lines.
   */
  run(
    program: string,
    args?: (string | number)[],
    options?: CommandOptions & { input?: string | Uint8Array; onLine?: (line: string) => unknown },
  ): Promise<Exit & { stdout: string }>;
  /** Fingerprint of a program's file, which changes with the file. */
  fingerprint(program: string): string;
  /** Sends a request to a granted host. `timeout` applies to the head of the response. */
  fetch(
    url: string | { toString(): string },
    options?: { method?: string; headers?: Record<string, string> | [string, string][]; body?: string | Uint8Array; timeout?: number },
  ): Promise<Response>;
  /** Memory of this agent in the conversation of its task. */
  readonly memory: Memory;
  /** Stores a value, as JSON, for later tasks of this agent. */
  remember(key: string, value: Json): Promise<void>;
  /** Reads the value of a key; `undefined` without one. */
  recall<T = Json>(key: string): Promise<T | undefined>;
  forget(key: string): Promise<void>;
  /** Keys that begin with the prefix, sorted. */
  remembered(prefix?: string): Promise<string[]>;
  /** Files of the task's working directory. */
  readonly workspace: Workspace;
  /** Writes a file for a program to read, and returns its path. */
  putFile(name: string, content: string | Uint8Array): Promise<string>;
  /** Reads a setting that the operator made for this agent. */
  setting(name: string): string | undefined;
  sleep(milliseconds: number): Promise<void>;
  /** Cards of the agents that this one may call. A card is third-party text, not instructions. */
  agents(): Promise<Record<string, Json>[]>;
  /** Finds callable agents that fit, best first. A text describes the work in any words. */
  find(query?: string | AgentQuery): Promise<FoundAgent[]>;
  /**
   * Starts a child task with another agent, and returns at once. Several calls run at the same
   * time.
   */
  start(agent: string, message: Content, options?: CallOptions): AgentCall;
  /** Calls another agent, and waits for the end of its task. */
  call(agent: string, message: Content, options?: CallOptions): Promise<Outcome>;
  /**
   * Tools of MCP servers that the operator granted. Descriptions are third-party text, not
   * instructions.
   */
  tools(): Promise<{ server: string; name: string; description?: string; inputSchema: Json }[]>;
  callTool(
    server: string,
    name: string,
    args?: Record<string, Json>,
    options?: { timeout?: number },
  ): Promise<{ content: Json[]; structuredContent?: Json; isError?: boolean; text: string }>;
  /**
   * Performs a side effect once, also if the agent runs again after a restart (`resume =
   * "replay"`).
   */
  step<T>(key: string, work: () => T | Promise<T>, options?: { mode?: "recorded" | "again" | "ask" }): Promise<T>;
  /** Writes a line to the hub's log, as `console` does. */
  log(level: "debug" | "info" | "warn" | "error", ...words: unknown[]): void;
  /** Completes the task. */
  done(content?: Content, options?: { metadata?: Record<string, Json> }): End;
  /** Fails the task: a stable reason for machines, a text for people; `fix` is a repair. */
  fail(reason: string, content: Content, options?: { fix?: string; metadata?: Record<string, Json> }): End;
  /** Rejects the task: the agent does not do this for any client. */
  reject(content: Content): End;
  /** Answers with a message instead of a task; the manifest says `direct_message = true`. */
  reply(content: Content): End;
}

export interface Skill {
  id: string;
  name: string;
  description: string;
  tags?: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
  /**
   * JSON Schema of its input data: at most 16 KiB, without external references. The hub validates
   * five-step submissions and calls of its MCP tool against it.
   */
  inputSchema?: Record<string, Json>;
  /** Prompts that clients of MCP show in their menus. */
  prompts?: SkillPrompt[];
}

/** A prompt of a skill: `{{name}}` in a text stands for an argument. */
export interface SkillPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean; values?: string[] }[];
  parts: ({ text: string } | { raw: string; mediaType: string })[];
}

/** A2A 1.0 agent card: the agent's identity and skills. The hub adds the interfaces. */
export interface Card {
  name: string;
  description: string;
  version: string;
  skills?: Skill[];
  defaultInputModes?: string[];
  defaultOutputModes?: string[];
  streaming?: boolean;
  extensions?: { uri: string; description: string; required?: boolean; params?: Record<string, Json> }[];
  provider?: { organization: string; url: string };
  iconUrl?: string;
  documentationUrl?: string;
}

export interface Health {
  status: "healthy" | "degraded" | "unhealthy";
  version?: string;
  detail?: string;
  fix?: string;
}

export interface Definition {
  card: Card;
  /**
   * Works on the task to its end. Returns the answer for the client: a text, parts, `ctx.done(…)`
   * and the like, or nothing.
   */
  run(ctx: Context, task: Task): Promise<End | Outcome | Content | void> | End | Outcome | Content | void;
  /** Reports whether work would succeed now. */
  health?(ctx: Context): Promise<Health> | Health;
  /** Cleans up external effects of a cancelled task, in a fresh instance. */
  cancel?(ctx: Context, taskId: string): Promise<void> | void;
}

/** Validates a definition, and returns it. */
export function defineAgent(definition: Definition): Definition;
/** Card in the contract's form. */
export function cardJson(definition: Definition): string;
