/** Positions of errors in the agent's own files. */

let lines;

/**
 * Sets the line table, which has the source file and line of each line of the bundle. The bundle
 * calls this.
 */
export function setLines(table) {
  lines = table;
}

const FRAME = /\(?([^\s()]+):(\d+):(\d+)\)?$/;

function frames(error) {
  const stack = typeof error?.stack === "string" ? error.stack : "";
  return stack.split("\n").flatMap((line) => {
    const found = FRAME.exec(line.trim());
    if (!found) return [];
    const name = /^at (\S+) \(/.exec(line.trim())?.[1];
    const at = original(found[1], Number(found[2]));
    return at ? [{ name, ...at }] : [];
  });
}

/** Source line of a line of the bundle; none for libraries. */
function original(file, line) {
  if (!lines) {
    const isOwn = !file.startsWith("node:") && !file.startsWith(new URL(".", import.meta.url).href);
    return isOwn ? { file: file.replace(/^.*\//, ""), line } : undefined;
  }
  const [source, at] = [lines.of[(line - 1) * 2], lines.of[(line - 1) * 2 + 1]];
  return source === undefined || source < 0 ? undefined : { file: lines.files[source], line: at };
}

/** Topmost position in the agent's own files, such as `agent.js:12`. */
export function place(error) {
  const [top] = frames(error);
  return top && `${top.file}:${top.line}`;
}

/** Stack with source positions. */
export function stackOf(error) {
  const told = frames(error).map(({ name, file, line }) => `    at ${name ?? "(anonymous)"} (${file}:${line})`);
  return told.length ? told.join("\n") : "    (no place is known)";
}
