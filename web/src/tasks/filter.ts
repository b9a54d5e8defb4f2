// Filters of the list of tasks, as the address has them.

import type { Task } from "../hub/types.ts";
import { directoryOf, titleOf } from "../text/words.ts";

export interface Filter {
  state: string;
  agent: string;
  directory: string;
  text: string;
}

/** Reads the filter from the query string. */
export function readFilter(query: URLSearchParams): Filter {
  return {
    state: query.get("state") ?? "",
    agent: query.get("agent") ?? "",
    directory: query.get("directory") ?? "",
    text: query.get("q") ?? "",
  };
}

/** Parameters of `hub/tasks/list`: all but the text, which the hub cannot search. */
export function listParams(filter: Filter): Record<string, string> {
  const params: Record<string, string> = {};
  if (filter.state !== "") params.state = filter.state;
  if (filter.agent !== "") params.agentId = filter.agent;
  if (filter.directory !== "") params.workingDirectory = filter.directory;
  return params;
}

/** True if all words of the text are in the task's title, agent, directory or id. */
export function matches(task: Task, text: string): boolean {
  const content = `${titleOf(task)}\n${task.request ?? ""}\n${task.agentId ?? ""}\n${directoryOf(task) ?? ""}\n${task.id}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => content.includes(word));
}
