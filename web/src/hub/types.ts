// Types of the hub's JSON-RPC dialect, as far as the page reads them (docs/reference/dialect.md).

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json | undefined };
export type JsonObject = { [name: string]: Json | undefined };

export type TaskState =
  | "submitted"
  | "working"
  | "input-required"
  | "auth-required"
  | "completed"
  | "failed"
  | "canceled"
  | "rejected"
  | "unknown";

export interface FilePart {
  kind: "file";
  file: { bytes?: string; uri?: string; name?: string; mimeType?: string };
  metadata?: JsonObject;
}

export type Part =
  | { kind: "text"; text: string; metadata?: JsonObject }
  | { kind: "data"; data: Json; metadata?: JsonObject }
  | FilePart;

export interface Message {
  kind?: "message";
  messageId: string;
  role: "user" | "agent";
  parts: Part[];
  contextId?: string;
  taskId?: string;
  metadata?: JsonObject;
}

export interface Artifact {
  artifactId: string;
  name?: string;
  description?: string;
  parts: Part[];
  metadata?: JsonObject;
}

export interface TaskStatus {
  state: TaskState;
  timestamp: string;
  message?: Message;
}

export interface Task {
  kind: "task";
  id: string;
  contextId: string;
  agentId?: string;
  status: TaskStatus;
  /** Beginning of the first message in one line; in summaries, which have no history. */
  request?: string;
  /** In summaries. */
  workingDirectory?: string;
  history?: Message[];
  artifacts?: Artifact[];
  metadata?: JsonObject;
}

export type TaskEvent =
  | Task
  | Message
  | { kind: "status-update"; taskId: string; status: TaskStatus; final: boolean; metadata?: JsonObject }
  | { kind: "artifact-update"; taskId: string; artifact: Artifact; append?: boolean; lastChunk?: boolean };

export type Action =
  | { kind: "run"; commands: string[][]; directory: string }
  | { kind: "edit"; paths: string[] }
  | { kind: "read"; paths: string[] }
  | { kind: "other"; reason: string; runs?: boolean };

export interface PermissionRequest {
  vendor: string;
  outsideSandbox?: boolean;
  action: Action;
}

export type QuestionKind = "input" | "permission" | "auth";

export interface Question {
  id: string;
  kind: QuestionKind;
  taskId: string;
  rootTaskId: string;
  contextId: string;
  agentId: string;
  path: string[];
  request: string;
  text: string;
  permission?: PermissionRequest;
  tool?: string;
  choices?: string[];
  directory?: string;
  openedAt: string;
  expiresAt?: string;
  queued?: boolean;
  interrupted?: boolean;
  setAside?: boolean;
  /** True once its deadline is near. */
  expiring?: boolean;
}

export type NoticeKind = "failed" | "quota" | "finished" | "conflict";

/** What happened to a task and needs no answer. */
export interface Notice {
  id: number;
  kind: NoticeKind;
  taskId: string;
  agentId: string;
  title: string;
  text: string;
  at: string;
}

export interface PastQuestion {
  number: number;
  id: string;
  kind: QuestionKind;
  taskId: string;
  agentId: string;
  text: string;
  openedAt: string;
  closedAt: string;
  answer?: string;
  answeredBy?: string;
  outcome: string;
  rule?: string;
}

export interface AnswerResult {
  id: string;
  answered: boolean;
  error?: string;
  earlier?: PastQuestion;
  rules?: string[];
  alsoAllowed?: string[];
}

export interface Agent {
  id: string;
  name: string;
  card: { description?: string; version?: string; skills?: { id: string; name: string; description?: string; examples?: string[] }[] };
  health?: { status: string; errorMessage?: string; detail?: string; fix?: string; lastCheck?: string; version?: string };
  breaker?: { state: string; retryAt?: string; cause?: string };
  source?: string;
  tier?: string;
  permissions?: string;
  unlisted?: boolean;
  models?: { default?: string; values?: string[] };
  efforts?: { default?: string; values?: string[] };
  notGranted?: { capability: string; command?: string; what?: string }[];
  heldBack?: JsonObject;
}

export interface TreeTask {
  id: string;
  parentId?: string;
  agentId: string;
  depth: number;
  key?: string;
  state: TaskState;
  createdAt: string;
  updatedAt: string;
  reason?: string;
  tokens?: number;
  costUsd?: number;
  asked?: string;
  question?: { id: string; kind: QuestionKind; text: string };
  hidden?: number;
}

export interface TaskDiff {
  text: string;
  commits?: number;
  files?: number;
  insertions?: number;
  deletions?: number;
  leftOut?: { name: string; reason: string }[];
}

export interface HubStatus {
  version: string;
  uptime: number;
  totalTasks: number;
  warnings?: (string | JsonObject)[];
  storage?: { status: string; error?: string; fix?: string };
  rejectedPlugins?: { file: string; error: string }[];
  stopping?: boolean;
}

export interface HubEvent {
  type: string;
  seq?: number;
  taskId?: string;
  contextId?: string;
  agentId?: string;
  state?: TaskState;
}

/** True if the task has ended for good. */
export function isFinal(state: TaskState): boolean {
  return state === "completed" || state === "failed" || state === "canceled" || state === "rejected";
}

/** True if the task waits for its client. */
export function isWaiting(state: TaskState): boolean {
  return state === "input-required" || state === "auth-required";
}
