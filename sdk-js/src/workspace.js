/** Files of the task's working directory. */

import { Failure, asking } from "./failure.js";

/** Path at which the hub opens the workspace. */
export const PLACE = "/workspace";

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
    const inside = within(path);
    return asking(() => this.#host.workspace.read(inside));
  }

  /** Writes a file of text or bytes, and creates its folders. */
  async write(path, content) {
    const inside = within(path);
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    asking(() => this.#host.workspace.write(inside, bytes));
  }

  /** Lists the names of a folder, sorted; names of folders end in `/`. */
  async list(path = "") {
    const inside = within(path);
    return asking(() => this.#host.workspace.list(inside)).sort();
  }
}

/** Path below the workspace, without `.` and the place of the workspace. */
function within(path) {
  const text = String(path);
  const inside = text === PLACE || text.startsWith(`${PLACE}/`) ? text.slice(PLACE.length + 1) : text;
  const names = inside.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..") || inside.startsWith("/")) {
    throw Failure.invalid(`\`${text}\` is outside of the workspace; give a path below it, such as \`src/main.js\``);
  }
  return names.join("/");
}
