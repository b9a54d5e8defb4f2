/** Files of the task's working directory. */

import { Failure, asking } from "./failure.js";

/** Path at which the hub opens the workspace. */
export const WORKSPACE_ROOT = "/workspace";

/**
 * Access to the files of a granted workspace. Paths are relative to it; folders end in `/` in a
 * list.
 */
export class Workspace {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** Reads a file as text. */
  async read(path) {
    return new TextDecoder().decode(await this.readBytes(path));
  }

  /** Reads a file as bytes. */
  async readBytes(path) {
    const relative = relativePath(path);
    return asking(() => this.#host.workspace.read(relative));
  }

  /** Writes a file of text or bytes, and creates its folders. */
  async write(path, content) {
    const relative = relativePath(path);
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    asking(() => this.#host.workspace.write(relative, bytes));
  }

  /** Lists the names of a folder, sorted; names of folders end in `/`. */
  async list(path = "") {
    const relative = relativePath(path);
    return asking(() => this.#host.workspace.list(relative)).sort();
  }
}

/** Path relative to the workspace root, without `.` and that root. */
function relativePath(path) {
  const text = String(path);
  const relative = text === WORKSPACE_ROOT || text.startsWith(`${WORKSPACE_ROOT}/`) ? text.slice(WORKSPACE_ROOT.length + 1) : text;
  const names = relative.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..") || relative.startsWith("/")) {
    throw Failure.invalid(`\`${text}\` is outside of the workspace; give a path below it, such as \`src/main.js\``);
  }
  return names.join("/");
}
