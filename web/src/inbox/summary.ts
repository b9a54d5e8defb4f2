// A question in one line, and the details that its task's status adds.

import type { Json, JsonObject, Question, Task } from "../hub/types.ts";
import { count, shellText } from "../text/words.ts";

export interface Summary {
  /** True if `text` is a command. */
  isCommand: boolean;
  text: string;
}

/** What would be done, or what is asked. */
export function summaryOf(question: Question): Summary {
  const action = question.permission?.action;
  if (action?.kind === "run") {
    return { isCommand: true, text: action.commands.map(shellText).join(" && ") };
  }
  if (action?.kind === "edit" || action?.kind === "read") {
    const verb = action.kind === "edit" ? "Change" : "Read";
    const [first = ""] = action.paths;
    return {
      isCommand: false,
      text: action.paths.length === 1 ? `${verb} ${first}` : `${verb} ${count(action.paths.length, "file")}: ${first}, …`,
    };
  }
  return { isCommand: false, text: questionLine(question.text) };
}

/** Text of a question in one line. */
export function questionLine(text: string): string {
  const lines = text.slice(0, 2_000).split("\n").map((line) => line.trim());
  // The instruction how to answer in a terminal says nothing in a list.
  const told = lines.filter((line) => line !== "" && !/^(is this to be done\? )?answer `allow` or `deny`\.?$/i.test(line));
  const line = told.join(" ");
  return line === "" ? "(a form to fill in)" : line.slice(0, 400);
}

export interface FileChange {
  path: string;
  diff: string;
}

/** Details of a question from the data of its task's status. */
export interface Details {
  tool?: string;
  title?: string;
  input?: Json;
  changes: FileChange[];
  form?: JsonObject;
  choices: string[];
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads the details, if the task's status asks this very question. */
export function detailsOf(task: Task, questionId: string): Details | undefined {
  const asked = task.metadata?.question;
  if (!isObject(asked) || asked.id !== questionId) return undefined;
  const details: Details = { changes: [], choices: [] };
  for (const part of task.status.message?.parts ?? []) {
    if (part.kind !== "data" || !isObject(part.data)) continue;
    const { tool, input, toolCall, changes, form, choices } = part.data;
    if (typeof tool === "string") details.tool = tool;
    if (input !== undefined) details.input = input;
    if (isObject(toolCall) && typeof toolCall.title === "string") details.title = toolCall.title;
    if (isObject(form)) details.form = form;
    if (Array.isArray(choices)) details.choices = choices.filter((it): it is string => typeof it === "string");
    if (Array.isArray(changes)) {
      for (const change of changes) {
        if (isObject(change) && typeof change.path === "string" && typeof change.diff === "string") {
          details.changes.push({ path: change.path, diff: change.diff });
        }
      }
    }
  }
  return details;
}
