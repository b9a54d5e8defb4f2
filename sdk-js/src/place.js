/** Where an error was thrown, in the words of the agent's own files. */

let lines;

/** Called by the bundle: for each of its lines the file and line that it was made of. */
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

/** A line of the bundle as the line that it was made of; of libraries there is none. */
function original(file, line) {
  if (!lines) {
    const isOwn = !file.startsWith("node:") && !file.startsWith(new URL(".", import.meta.url).href);
    return isOwn ? { file: file.replace(/^.*\//, ""), line } : undefined;
  }
  const [source, at] = [lines.of[(line - 1) * 2], lines.of[(line - 1) * 2 + 1]];
  return source === undefined || source < 0 ? undefined : { file: lines.files[source], line: at };
}

/** The topmost place in the agent's own files, such as `agent.js:12`. */
export function place(error) {
  const [top] = frames(error);
  return top && `${top.file}:${top.line}`;
}

/** The stack in those words. */
export function stackOf(error) {
  const told = frames(error).map(({ name, file, line }) => `    at ${name ?? "(anonymous)"} (${file}:${line})`);
  return told.length ? told.join("\n") : "    (no place is known)";
}
