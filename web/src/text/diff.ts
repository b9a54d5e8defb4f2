// Parser of unified diffs, as git writes them.

export interface DiffLine {
  kind: "add" | "remove" | "context" | "note";
  text: string;
  before?: number;
  after?: number;
}

export interface DiffHunk {
  header: string;
  lines: DiffLine[];
}

export interface DiffFile {
  path: string;
  /** Earlier path of a renamed file. */
  from?: string;
  /** `new file`, `deleted`, `binary`, … as far as the diff says it. */
  notes: string[];
  hunks: DiffHunk[];
  insertions: number;
  deletions: number;
}

function plainPath(text: string): string {
  const name = text.split("\t")[0] ?? "";
  const bare = name.startsWith('"') && name.endsWith('"') ? name.slice(1, -1) : name;
  return bare.replace(/^[ab]\//, "");
}

function headerPath(line: string): string {
  const quoted = /^diff --git "?a\/.*?"? "?b\/(.*?)"?$/.exec(line);
  return quoted?.[1] ?? line.slice("diff --git ".length);
}

/** Parses a diff. Text before the first file, such as that of a commit, is left out. */
export function parseDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | undefined;
  let hunk: DiffHunk | undefined;
  let [before, after, beforeLeft, afterLeft] = [0, 0, 0, 0];
  const begin = (path: string) => {
    file = { path, notes: [], hunks: [], insertions: 0, deletions: 0 };
    hunk = undefined;
    files.push(file);
    return file;
  };
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  for (const line of all) {
    // A hunk with wrong numbers must not swallow the next file.
    const isContent = line === "" || " +-\\".includes(line[0] ?? "");
    if (hunk && file && isContent && (beforeLeft > 0 || afterLeft > 0 || line.startsWith("\\"))) {
      const [mark, rest] = [line[0], line.slice(1)];
      if (mark === "+") {
        hunk.lines.push({ kind: "add", text: rest, after: after++ });
        file.insertions += 1;
        afterLeft -= 1;
      } else if (mark === "-") {
        hunk.lines.push({ kind: "remove", text: rest, before: before++ });
        file.deletions += 1;
        beforeLeft -= 1;
      } else if (mark === "\\") {
        hunk.lines.push({ kind: "note", text: rest.trim() });
      } else {
        hunk.lines.push({ kind: "context", text: rest, before: before++, after: after++ });
        beforeLeft -= 1;
        afterLeft -= 1;
      }
      continue;
    }
    if (line.startsWith("diff --git ")) {
      begin(headerPath(line));
    } else if (line.startsWith("--- ")) {
      const path = plainPath(line.slice(4));
      if (!file || file.hunks.length > 0) begin(path);
      else if (path !== "/dev/null") file.path = path;
    } else if (line.startsWith("+++ ") && file) {
      const path = plainPath(line.slice(4));
      if (path !== "/dev/null") file.path = path;
    } else if (line.startsWith("@@")) {
      const range = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
      if (!range) continue;
      const target = file ?? begin("");
      [before, after] = [Number(range[1]), Number(range[3])];
      [beforeLeft, afterLeft] = [Number(range[2] ?? 1), Number(range[4] ?? 1)];
      hunk = { header: line, lines: [] };
      target.hunks.push(hunk);
    } else if (file && file.hunks.length === 0) {
      if (line.startsWith("new file mode")) file.notes.push("new file");
      else if (line.startsWith("deleted file mode")) file.notes.push("deleted");
      else if (line.startsWith("rename from ")) file.from = line.slice("rename from ".length);
      else if (line.startsWith("new mode ")) file.notes.push(`mode ${line.slice("new mode ".length)}`);
      else if (line.startsWith("Binary files ") || line === "GIT binary patch") file.notes.push("binary");
    }
  }
  return files;
}

/** True if a text looks like a unified diff. */
export function isDiff(text: string): boolean {
  return /^(diff --git |--- .*\n\+\+\+ )/m.test(text.slice(0, 4_000)) && /^@@ -\d/m.test(text);
}
