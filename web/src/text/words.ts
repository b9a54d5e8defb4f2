// Names of states and kinds, and small helpers for texts.

import type { Message, Part, Task, TaskState } from "../hub/types.ts";
import { plainLine } from "./plain.ts";

const STATES: Record<TaskState, string> = {
  submitted: "Queued",
  working: "Working",
  "input-required": "Needs input",
  "auth-required": "Needs login",
  completed: "Completed",
  failed: "Failed",
  canceled: "Canceled",
  rejected: "Rejected",
  unknown: "Unknown",
};

/** Name of a task's state. */
export function stateName(state: TaskState): string {
  return STATES[state] ?? state;
}

/** States in the order in which filters offer them. */
export const FILTER_STATES: TaskState[] = [
  "input-required",
  "auth-required",
  "working",
  "submitted",
  "completed",
  "failed",
  "canceled",
  "rejected",
];

/** All texts of parts, each on its own line. */
export function textOf(parts: readonly Part[]): string {
  return parts
    .filter((part) => part.kind === "text")
    .map((part) => part.text)
    .join("\n");
}

/** First user message of a task. */
export function firstRequest(task: Task): Message | undefined {
  return task.history?.find((message) => message.role === "user");
}

/** Title of a task: the beginning of its request, in one line. Lists have only the request. */
export function titleOf(task: Task): string {
  const text = plainLine(task.request ?? textOf(firstRequest(task)?.parts ?? []));
  return text === "" ? "(no text)" : cut(text, 160);
}

/** Cuts a text at a number of characters, with an ellipsis. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = /[\ud800-\udbff]/.test(text[length - 1] ?? "") ? length - 1 : length;
  return `${text.slice(0, end).trimEnd()}…`;
}

/** Working directory of a task: that of its latest message that has one. */
export function directoryOf(task: Task): string | undefined {
  if (task.workingDirectory !== undefined) return task.workingDirectory;
  for (const message of [...(task.history ?? [])].reverse()) {
    const directory = message.metadata?.workingDirectory;
    if (typeof directory === "string") return directory;
  }
  return undefined;
}

/** `1 file`, `3 files`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** Tokens in short: `12.3k`. */
export function tokens(number: number): string {
  if (number < 1000) return String(number);
  return number < 1e6 ? `${(number / 1000).toFixed(1)}k` : `${(number / 1e6).toFixed(2)}M`;
}

/** Words of a command as a shell reads them. */
export function shellText(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`)).join(" ");
}
