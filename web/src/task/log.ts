// A task's log as the page shows it: entries in order, tool calls merged by their id, the plan.

import type { Artifact, Json, JsonObject, Message, Part, TaskEvent, TaskState } from "../hub/types.ts";

export interface ToolCall {
  id: string;
  name?: string;
  title?: string;
  kind?: string;
  status?: string;
  input?: Json;
  output?: Json;
  locations?: { path: string; line?: number }[];
}

export type Entry =
  | { kind: "message"; seq: number; time: string; state: TaskState; message: Message }
  | { kind: "artifact"; seq: number; artifact: Artifact; isDone: boolean }
  | { kind: "tool"; seq: number; time: string; tool: ToolCall };

export interface Change {
  state: TaskState;
  time: string;
  note?: string;
}

export interface PlanItem {
  content: string;
  status: string;
}

/** Most entries that are kept; the oldest steps leave first. */
const MOST_ENTRIES = 4_000;

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class TaskLog {
  entries: Entry[] = [];
  changes: Change[] = [];
  plan: PlanItem[] = [];
  lastSeq = 0;
  left = 0;
  private readonly tools = new Map<string, Entry & { kind: "tool" }>();
  private readonly artifacts = new Map<string, Entry & { kind: "artifact" }>();

  /** Takes the next event. */
  apply(event: TaskEvent, seq: number | undefined): void {
    if (seq !== undefined) this.lastSeq = seq;
    const at = seq ?? this.lastSeq;
    if (event.kind === "task") {
      this.change(event.status.state, event.status.timestamp);
      for (const artifact of event.artifacts ?? []) this.artifact(artifact, false, true, at);
    } else if (event.kind === "status-update") {
      const metadata: JsonObject = { ...event.status.message?.metadata, ...event.metadata };
      const { state, timestamp, message } = event.status;
      this.change(state, timestamp, noteOf(metadata));
      this.readPlan(metadata.plan);
      if (isObject(metadata.tool)) this.tool(metadata.tool, timestamp, at);
      if (message && hasContent(message)) this.add({ kind: "message", seq: at, time: timestamp, state, message });
    } else if (event.kind === "artifact-update") {
      this.artifact(event.artifact, event.append === true, event.lastChunk !== false, at);
    } else if (event.kind === "message") {
      this.add({ kind: "message", seq: at, time: "", state: "completed", message: event });
    }
  }

  private add(entry: Entry): void {
    this.entries.push(entry);
    if (this.entries.length <= MOST_ENTRIES) return;
    const step = this.entries.findIndex((it) => it.kind === "tool" || (it.kind === "message" && it.state === "working"));
    const [gone] = this.entries.splice(Math.max(0, step), 1);
    if (gone?.kind === "tool") this.tools.delete(gone.tool.id);
    this.left += 1;
  }

  private change(state: TaskState, time: string, note?: string): void {
    const last = this.changes.at(-1);
    if (last?.state === state && note === undefined) return;
    this.changes.push(note === undefined ? { state, time } : { state, time, note });
  }

  private readPlan(plan: Json | undefined): void {
    // A plan that is removed at the end stays visible as it was.
    if (!Array.isArray(plan)) return;
    this.plan = plan.filter(isObject).map((item) => ({
      content: typeof item.content === "string" ? item.content : "",
      status: typeof item.status === "string" ? item.status : "pending",
    }));
  }

  private tool(report: JsonObject, time: string, seq: number): void {
    const id = typeof report.id === "string" ? report.id : "";
    const known = this.tools.get(id);
    if (known) {
      known.tool = { ...known.tool, ...readTool(report) };
      return;
    }
    const entry: Entry & { kind: "tool" } = { kind: "tool", seq, time, tool: { ...readTool(report), id } };
    this.tools.set(id, entry);
    this.add(entry);
  }

  private artifact(artifact: Artifact, append: boolean, isDone: boolean, seq: number): void {
    const known = this.artifacts.get(artifact.artifactId);
    if (!known) {
      const entry: Entry & { kind: "artifact" } = { kind: "artifact", seq, artifact, isDone };
      this.artifacts.set(artifact.artifactId, entry);
      this.add(entry);
      return;
    }
    known.isDone = isDone;
    known.artifact = append
      ? { ...known.artifact, ...artifact, parts: joinParts(known.artifact.parts, artifact.parts) }
      : artifact;
  }
}

/** Members of a report of a tool that have the right type: an agent may report anything. */
function readTool(report: JsonObject): Partial<ToolCall> {
  const tool: Partial<ToolCall> = {};
  for (const name of ["name", "title", "kind", "status"] as const) {
    const value = report[name];
    if (typeof value === "string") tool[name] = value;
  }
  if (report.input !== undefined) tool.input = report.input;
  if (report.output !== undefined) tool.output = report.output;
  if (Array.isArray(report.locations)) {
    tool.locations = report.locations.filter(isObject).flatMap((place) =>
      typeof place.path === "string"
        ? [{ path: place.path, ...(typeof place.line === "number" ? { line: place.line } : {}) }]
        : [],
    );
  }
  return tool;
}

/** Appends parts; texts that follow each other become one. */
export function joinParts(before: Part[], after: Part[]): Part[] {
  const result = [...before];
  for (const part of after) {
    const last = result.at(-1);
    if (last?.kind === "text" && part.kind === "text" && last.metadata?.filename === part.metadata?.filename) {
      result[result.length - 1] = { ...last, ...part, text: last.text + part.text };
    } else {
      result.push(part);
    }
  }
  return result;
}

function hasContent(message: Message): boolean {
  return message.parts.some((part) => part.kind !== "text" || part.text.trim() !== "");
}

function noteOf(metadata: JsonObject): string | undefined {
  const rule = metadata.permission;
  if (isObject(rule) && typeof rule.rule === "string") {
    return `${rule.effect === "allow" ? "Allowed" : "Denied"} by rule ${rule.rule}`;
  }
  if (typeof metadata.reason === "string") return metadata.reason;
  return undefined;
}
