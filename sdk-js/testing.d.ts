/** Hub for tests without WebAssembly: follows a script and records all calls. */

import type { AgentQuery, Content, Definition, Failure, Health, Json, Message, Outcome, Part, State } from "./index.js";

export interface ScriptedResponse {
  status?: number;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  json?: Json;
  pieces?: (string | Uint8Array)[];
}
type Answered = string | Uint8Array | ScriptedResponse | Failure;
export interface ScriptedRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** Scripted hub. Calls that the script does not name are denied. */
export class ScriptedHost {
  readonly events: (
    | { type: "status"; state: State; text?: string; message?: Message; metadata?: Record<string, Json> }
    | { type: "artifact"; artifact: { id: string; name?: string; parts: Part[]; text: string }; append: boolean; lastChunk: boolean }
  )[];
  readonly asked: Message[];
  readonly spawned: { program: string; args: string[]; env: Record<string, string>; cwd: string | null; stdin: string }[];
  readonly requests: ScriptedRequest[];
  readonly logs: { level: string; text: string }[];
  readonly files: { name: string; bytes: Uint8Array }[];
  /** Further messages to called agents. */
  readonly sent: { agent: string; message: Message }[];
  readonly calls: { agent: string; message: Message; options: Record<string, unknown> }[];
  readonly searches: AgentQuery[];
  readonly toolCalls: { server: string; name: string; args: Record<string, Json> }[];
  readonly memory: Map<string, string>;
  readonly mind: { working: Record<string, Json>; items: { id: string; type: string; data: Json }[] };
  readonly steps: Map<string, string>;
  readonly said: string[];
  answer(answer: Content | Failure): this;
  /** Scripts the next message to the agent at work. Without one, its wait times out. */
  message(message: Content): this;
  program(name: string, script?: { stdout?: string | Uint8Array; stderr?: string; code?: number }): this;
  respond(response: Answered | ((request: ScriptedRequest) => Answered)): this;
  agent(name: string, outcome: string | { state?: State; text?: string; artifacts?: Record<string, string> }): this;
  tool(server: string, name: string, result: Json): this;
  setting(name: string, value: string | number | boolean): this;
  memoryBytes(max: number): this;
  /** Grants a workspace with these files. */
  workspace(files: Record<string, string | Uint8Array>, options?: { readOnly?: boolean }): this;
  /** Text of a file of the workspace. */
  workspaceFile(path: string): string | undefined;
  cancelAfter(events: number): this;
  /** Makes a rule of the operator for requests for permission whose facts, as JSON, contain this text. */
  rule(part: string, options?: { denied?: string }): this;
  run(definition: Definition, content?: Content, options?: { live?: boolean; history?: Content[]; workingDirectory?: string }): Promise<Outcome>;
  health(definition: Definition): Promise<Health>;
  card(definition: Definition): Record<string, any>;
  artifact(id: string): string | undefined;
}
