/** Files of the workspace, by WASI: QuickJS has no file functions. */

import { Failure } from "../src/failure.js";
import { WORKSPACE_ROOT } from "../src/workspace.js";

const CHUNK = 1 << 20;

const MISSING = "the agent has no workspace; its manifest must ask with `[workspace]`, and the operator allows it with `a2a-hub plugin grant ID --workspace read`";

/** Kind of failure and text for each error of WASI with a cause that a user can change. */
const CAUSES = {
  "no-entry": ["invalid", "there is no such file in the workspace"],
  "not-directory": ["invalid", "it is no folder"],
  "is-directory": ["invalid", "it is a folder, and not a file"],
  access: ["denied", "not granted; `a2a-hub plugin grant ID --workspace read-write` allows it"],
  "not-permitted": ["denied", "not granted, or outside of the workspace; `a2a-hub plugin grant ID --workspace read-write` allows changes"],
  "read-only": ["denied", "the workspace is read-only; `a2a-hub plugin grant ID --workspace read-write` allows changes"],
  "insufficient-space": ["exhausted", "the task's limit of written files or bytes is used up"],
};

/** Functions of the workspace for the SDK, on the imports of WASI. */
export function workspaceOf(preopens) {
  const attempt = (action, work) => {
    try {
      const preopen = preopens.getDirectories().find(([, path]) => path === WORKSPACE_ROOT);
      if (!preopen) throw Failure.denied(`${action}: ${MISSING}`);
      return work(preopen[0]);
    } catch (thrown) {
      if (thrown instanceof Failure) throw thrown;
      const code = thrown?.payload ?? thrown;
      const [kind, reason] = CAUSES[code] ?? ["unavailable", typeof code === "string" ? code : String(code?.message ?? code)];
      throw new Failure(kind, `${action}: ${reason}`);
    }
  };
  const open = (root, path, create, flags) => root.openAt({ symlinkFollow: true }, path || ".", create, flags);
  return {
    read: (path) =>
      attempt(`read \`${path}\``, (root) => {
        const file = open(root, path, {}, { read: true });
        const chunks = [];
        for (let size = 0, ended = false; !ended; ) {
          const [bytes, end] = file.read(CHUNK, size);
          chunks.push(bytes);
          size += bytes.length;
          ended = end || bytes.length === 0;
        }
        return concatenated(chunks);
      }),
    write: (path, content) =>
      attempt(`write \`${path}\``, (root) => {
        const folders = path.split("/").slice(0, -1);
        folders.forEach((_, index) => {
          try {
            root.createDirectoryAt(folders.slice(0, index + 1).join("/"));
          } catch (thrown) {
            if ((thrown?.payload ?? thrown) !== "exist") throw thrown;
          }
        });
        const file = open(root, path, { create: true, truncate: true }, { write: true });
        for (let offset = 0; offset < content.length; ) offset += Number(file.write(content.slice(offset, offset + CHUNK), offset));
      }),
    list: (path) =>
      attempt(`list \`${path || "."}\``, (root) => {
        const entries = open(root, path, { directory: true }, { read: true }).readDirectory();
        const names = [];
        for (let entry; (entry = entries.readDirectoryEntry()); ) names.push(entry.type === "directory" ? `${entry.name}/` : entry.name);
        return names;
      }),
  };
}

function concatenated(chunks) {
  const buffer = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    buffer.set(chunk, offset);
    offset += chunk.length;
  }
  return buffer;
}
