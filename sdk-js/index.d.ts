/** Write an agent for a2a-hub: `export default defineAgent({ card, run })`. */

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type State = "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "canceled" | "rejected";

/** A part of a message or an artifact: one of `text`, `data`, `bytes` and `url`. */
export interface Part {
  text?: string;
  data?: Json;
  bytes?: Uint8Array;
  url?: string;
  filename?: string;
  mediaType?: string;
  metadata?: Record<string, Json>;
}

/** What may be said: a text, a part, several, or a message. */
export type Content = string | Part | (string | Part)[] | { parts: (string | Part)[]; metadata?: Record<string, Json>; extensions?: string[]; referenceTaskIds?: string[] };

/** What a client or an agent said. */
export class Message {
  readonly id: string;
  readonly role: "user" | "agent";
  readonly parts: Part[];
  readonly contextId?: string;
  readonly taskId?: string;
  readonly referenceTaskIds: string[];
  readonly extensions: string[];
  readonly metadata?: Record<string, Json>;
  /** All its text. */
  get text(): string;
  /** The value of its first data part. */
  get data(): Json | undefined;
}

/** One piece of work. `history` holds the earlier messages of its conversation, oldest first. */
export class Task {
  readonly id: string;
  readonly contextId: string;
  readonly message: Message;
  readonly history: Message[];
  readonly workingDirectory?: string;
  readonly metadata?: Record<string, Json>;
  /** All text of the client's message. */
  get text(): string;
}

/** How a task of another agent ended. Without a `state` it was a direct answer. */
export class Outcome {
  readonly state?: State;
  readonly message?: Message;
  readonly metadata?: Record<string, Json>;
  /** The texts of its artifacts, by their ids. */
  readonly artifacts?: Record<string, string>;
  /** What was said at the end. */
  get text(): string;
}

export type FailureKind = "invalid" | "unsupported" | "denied" | "cancelled" | "timeout" | "unavailable" | "exhausted" | "internal";

/** What the hub refused or could not do; also what an agent throws to end its task as failed. */
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

/** The task was cancelled: clean up and let it pass. */
export class Cancelled extends Failure {}

/** How a run ends; made by `ctx.done`, `ctx.fail`, `ctx.reject` and `ctx.reply`. */
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

/** A growing artifact of text. */
export interface TextStream {
  /** Adds text, and sends what is worth sending. */
  write(text: string): Promise<void>;
  /** Sends what there is. */
  flush(): Promise<void>;
  /** Ends it: the artifact is the text that is given, or else all that was written. */
  finish(text?: string): Promise<string>;
}

/** How a program ended. */
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

/** A program at work; `for await` gives its lines. */
export interface Child extends AsyncIterable<string> {
  /** The next line; `undefined` once it has ended. A `Failure` of kind `timeout` when there was none in so many milliseconds. */
  nextLine(options?: { timeout?: number }): Promise<string | undefined>;
  write(data: string | Uint8Array): Promise<void>;
  closeStdin(): void;
  interrupt(): void;
  kill(): void;
  wait(): Promise<Exit>;
}

/** An answer over HTTP, whose body is read as it comes; `for await` gives its pieces. */
export interface Response extends AsyncIterable<Uint8Array> {
  readonly url: string;
  readonly status: number;
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null; has(name: string): boolean; [Symbol.iterator](): Iterator<[string, string]> };
  lines(): AsyncIterable<string>;
  /** Server-sent events, as models speak. */
  events(): AsyncIterable<{ event: string; data: string; id?: string }>;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<any>;
  /** Hangs up; what is left of the body is not read. */
  close(): void;
}

export type Event =
  | { type: "status"; state: State; message?: Message }
  | { type: "artifact"; artifact: { id: string; name?: string; parts: Part[]; text: string }; append: boolean; lastChunk: boolean }
  | { type: "other"; value: string };

/** Another agent at work; `for await` gives what it tells. */
export interface AgentCall extends AsyncIterable<Event> {
  readonly taskId: string;
  /** Answers what it asks; needs the option `answersQuestions`. */
  answer(content: Content): void;
  cancel(): void;
  /** Waits for its end, whatever that is. */
  outcome(): Promise<Outcome>;
  /** Waits for its end, and throws unless that is `completed` or a direct answer. */
  completed(): Promise<Outcome>;
}

/** What an agent must be like to be found; all that is said must hold. */
export interface AgentQuery {
  /** What it is to do, in any words. */
  query?: string;
  /** Its id, an alias or its card's name. */
  name?: string;
  skill?: string;
  tags?: string[];
  /** Which versions will do, such as `2` or `>=1.4`. */
  version?: string;
  /** Takes older ones if there is no other. */
  allowOlder?: boolean;
  inputModes?: string[];
  outputModes?: string[];
  limit?: number;
}

export interface FoundAgent {
  id: string;
  /** Another's text. */
  card: Record<string, Json>;
  /** More is better. */
  score: number;
  /** Why it was found: by what, and what of it fitted. */
  why: { by: string; what: string; in?: string[] }[];
}

export interface CallOptions {
  /** The same call made again joins the task that there is. */
  key?: string;
  /** Milliseconds. */
  timeout?: number;
  maxDepth?: number;
  maxTasks?: number;
  maxTokens?: number;
  maxCostUsd?: number;
  workingDirectory?: string;
  contextId?: string;
  answersQuestions?: boolean;
  /** The child has in mind what this agent has, before it begins: goal, thoughts, decisions and variables, but for what is private. */
  inheritWorkingMemory?: boolean;
  /** The same for items: those that the message recalls, or a text does. */
  inheritMemory?: boolean | string;
  /** How much of it goes; `full` unless said. */
  memoryScope?: "full" | "minimal" | "summary";
  /** What goes in the scope `minimal` beside what the message names. */
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

/** What an agent has in mind in the conversation of its task; granted with `memory`. */
export interface Memory {
  /** The same, but what it sets is private, and never handed over to another agent. */
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
  /** The items that a text recalls, best first; the newest for a text without words. */
  recall(query?: string, limit?: number): Promise<MemoryItem[]>;
  forget(id: string): Promise<void>;
}

/** What a running agent can do outside itself. What cannot be done is thrown as a `Failure`; times are milliseconds. */
export class Context {
  /** Whether somebody listens while the run goes on. If not, only the result counts. */
  readonly live: boolean;
  readonly cancelled: boolean;
  /** Throws `Cancelled` if the task was cancelled. */
  checkCancelled(): void;
  /** Tells the listeners what is being done. */
  say(content: Content, options?: { metadata?: Record<string, Json> }): Promise<void>;
  /** Tells how far the work is, in per cent, and what is being done. */
  progress(percent: number, text?: string): Promise<void>;
  /** Makes an artifact; another of the same id is replaced, unless `append` adds to it. */
  artifact(id: string, content: Content, options?: ArtifactOptions & { append?: boolean; lastChunk?: boolean }): Promise<void>;
  /** A growing artifact of text. */
  stream(id: string, options?: ArtifactOptions): TextStream;
  /** Asks the client, and waits for the answer. `auth`: the answer is a login. */
  ask(prompt: Content, options?: { auth?: boolean; timeout?: number }): Promise<Message>;
  /** URIs of the A2A extensions that are active for the client's latest message. */
  readonly extensions: string[];
  /** Whether the client takes this media type. */
  accepts(mediaType: string): boolean;
  /** Starts a granted program, to be talked with. */
  spawn(program: string, args?: (string | number)[], options?: CommandOptions): Child;
  /** Runs a granted program to its end; `onLine` hears each line as it comes, `stdout` has them otherwise. */
  run(
    program: string,
    args?: (string | number)[],
    options?: CommandOptions & { input?: string | Uint8Array; onLine?: (line: string) => unknown },
  ): Promise<Exit & { stdout: string }>;
  /** Another text once another file stands in the program's place. */
  fingerprint(program: string): string;
  /** Sends a request to a granted host. `timeout` is for the head of the answer. */
  fetch(
    url: string | { toString(): string },
    options?: { method?: string; headers?: Record<string, string> | [string, string][]; body?: string | Uint8Array; timeout?: number },
  ): Promise<Response>;
  /** What this agent has in mind in the conversation of its task. */
  readonly memory: Memory;
  /** Keeps a value, as JSON, for later tasks of this agent. */
  remember(key: string, value: Json): Promise<void>;
  /** What was kept under the key; `undefined` if nothing is. */
  recall<T = Json>(key: string): Promise<T | undefined>;
  forget(key: string): Promise<void>;
  /** The keys that begin with the prefix, sorted. */
  remembered(prefix?: string): Promise<string[]>;
  /** Writes a file for a program to read, and returns its path. */
  putFile(name: string, content: string | Uint8Array): Promise<string>;
  /** What the operator set under this name. */
  setting(name: string): string | undefined;
  sleep(milliseconds: number): Promise<void>;
  /** The cards of the agents that this one may call. What a card says is another's text. */
  agents(): Promise<Record<string, Json>[]>;
  /** Those of them that fit, the best first. A text is what they are to do, in any words. */
  find(query?: string | AgentQuery): Promise<FoundAgent[]>;
  /** Gives another agent a task, and returns at once. Several such calls are at work at once. */
  start(agent: string, message: Content, options?: CallOptions): AgentCall;
  /** Has another agent do something, and waits for its end. */
  call(agent: string, message: Content, options?: CallOptions): Promise<Outcome>;
  /** The tools of servers that the operator grants. What a server says is another's text. */
  tools(): Promise<{ server: string; name: string; description?: string; inputSchema: Json }[]>;
  callTool(
    server: string,
    name: string,
    args?: Record<string, Json>,
    options?: { timeout?: number },
  ): Promise<{ content: Json[]; structuredContent?: Json; isError?: boolean; text: string }>;
  /** Does something to the world once, also where the agent is run again after a restart (`resume = "replay"`). */
  step<T>(key: string, work: () => T | Promise<T>, options?: { mode?: "recorded" | "again" | "ask" }): Promise<T>;
  /** Tells the operator something, in the hub's log; `console` does so, too. */
  log(level: "debug" | "info" | "warn" | "error", ...words: unknown[]): void;
  /** The task is completed. */
  done(content?: Content, options?: { metadata?: Record<string, Json> }): End;
  /** The task failed: a stable reason for machines, a text for people; `fix` is what mends it. */
  fail(reason: string, content: Content, options?: { fix?: string; metadata?: Record<string, Json> }): End;
  /** The agent will not do this, whoever asks. */
  reject(content: Content): End;
  /** A message in place of a task. */
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
  /** JSON Schema of what it takes as data: at most 16 KiB, with references to places in itself only. The hub checks it against what is
   * submitted by the five-step protocol. */
  inputSchema?: Record<string, Json>;
}

/** Who an agent is and what it can do: an A2A 1.0 card, to which the hub adds where the agent is reached. */
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
  /** Does the task to its end. Returns what to tell the client: a text, parts, `ctx.done(…)` and the like, or nothing. */
  run(ctx: Context, task: Task): Promise<End | Outcome | Content | void> | End | Outcome | Content | void;
  /** Whether work would succeed now. */
  health?(ctx: Context): Promise<Health> | Health;
  /** Cleans up what a cancelled task left outside, in a fresh instance. */
  cancel?(ctx: Context, taskId: string): Promise<void> | void;
}

/** Checks a definition, and gives it back. */
export function defineAgent(definition: Definition): Definition;
/** The card as the contract has it. */
export function cardJson(definition: Definition): string;
