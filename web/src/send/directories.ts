// Working directories of recent tasks, the latest first.

import { read, write } from "../app/storage.ts";
import { call } from "../hub/call.ts";

const MOST = 30;

function stored(): string[] {
  try {
    const value: unknown = JSON.parse(read("directories") || "[]");
    return Array.isArray(value) ? value.filter((it): it is string => typeof it === "string") : [];
  } catch {
    return [];
  }
}

/** Directories that this browser sent to, then those of recent conversations. */
export async function recentDirectories(abort?: AbortSignal): Promise<string[]> {
  const contexts = await call<{ workingDirectory?: string }[]>("hub/contexts/list", { limit: 200 }, abort);
  const found = contexts.flatMap((it) => (it.workingDirectory === undefined ? [] : [it.workingDirectory]));
  return [...new Set([...stored(), ...found])].slice(0, MOST);
}

/** Remembers a directory. */
export function rememberDirectory(directory: string): void {
  write("directories", JSON.stringify([directory, ...stored().filter((it) => it !== directory)].slice(0, MOST)));
}
