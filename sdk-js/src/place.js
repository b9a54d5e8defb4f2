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
    const match = FRAME.exec(line.trim());
    if (!match) return [];
    const name = /^at (\S+) \(/.exec(line.trim())?.[1];
    const position = original(match[1], Number(match[2]));
    return position ? [{ name, ...position }] : [];
  });
}

/** Source line of a line of the bundle; none for libraries. */
function original(file, line) {
  if (!lines) {
    const isAgentFile = !file.startsWith("node:") && !file.startsWith(new URL(".", import.meta.url).href);
    return isAgentFile ? { file: file.replace(/^.*\//, ""), line } : undefined;
  }
  const [source, sourceLine] = [lines.of[(line - 1) * 2], lines.of[(line - 1) * 2 + 1]];
  return source === undefined || source < 0 ? undefined : { file: lines.files[source], line: sourceLine };
}

/** Topmost position in the agent's own files, such as `agent.js:12`. */
export function positionOf(error) {
  const [top] = frames(error);
  return top && `${top.file}:${top.line}`;
}

/** Stack with source positions. */
export function stackOf(error) {
  const formatted = frames(error).map(({ name, file, line }) => `    at ${name ?? "(anonymous)"} (${file}:${line})`);
  return formatted.length ? formatted.join("\n") : "    (no place is known)";
}
