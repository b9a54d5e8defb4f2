// Unified diff with line numbers and colours.

import { useMemo, useState } from "preact/hooks";
import { type DiffFile, parseDiff } from "../text/diff.ts";
import { count } from "../text/words.ts";
import { Code } from "./Code.tsx";
import { Exact } from "./Text.tsx";

/** Lines of a file that are shown at first. */
const FIRST_LINES = 200;
/** Files that are open at first. */
const OPEN_FILES = 8;
const LONGEST_LINE = 2_000;
const SIGNS = { add: "+", remove: "-", context: " ", note: "\\" } as const;

export function Diff({ text }: { text: string }) {
  const files = useMemo(() => parseDiff(text), [text]);
  if (files.length === 0) return <Code text={text} label="Changes" />;
  return (
    <div class="diff">
      {files.map((file, at) => (
        <FileDiff key={`${at} ${file.path}`} file={file} open={at < OPEN_FILES} />
      ))}
    </div>
  );
}

function FileDiff({ file, open }: { file: DiffFile; open: boolean }) {
  const [isOpen, setOpen] = useState(open);
  const [limit, setLimit] = useState(FIRST_LINES);
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = limit;
  return (
    <details class="diff-file" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="diff-path">
          {file.from !== undefined && (
            <>
              <Exact text={file.from} /> →{" "}
            </>
          )}
          <Exact text={file.path} />
        </span>
        {file.notes.map((note) => (
          <span class="tag" key={note}>
            <Exact text={note} />
          </span>
        ))}
        <span class="diff-counts">
          <span class="added">+{file.insertions}</span> <span class="removed">−{file.deletions}</span>
        </span>
      </summary>
      {isOpen && (
        <div class="diff-lines" tabIndex={0} role="group" aria-label={`Changes of ${file.path}`}>
          <table>
            <tbody>
              {file.hunks.map((hunk) => {
                if (left <= 0) return null;
                const lines = hunk.lines.slice(0, left);
                left -= lines.length;
                return [
                  <tr class="diff-hunk" key={hunk.header}>
                    <td colSpan={3}>
                      <Exact text={hunk.header} />
                    </td>
                  </tr>,
                  ...lines.map((line, at) => (
                    <tr class={`diff-${line.kind}`} key={`${hunk.header}${at}`}>
                      <td class="diff-number">{line.before ?? ""}</td>
                      <td class="diff-number">{line.after ?? ""}</td>
                      <td class="diff-text">
                        <span class="diff-sign">{SIGNS[line.kind]}</span>
                        <Exact text={line.text.slice(0, LONGEST_LINE)} />
                        {line.text.length > LONGEST_LINE && <em> … {count(line.text.length, "character")}</em>}
                      </td>
                    </tr>
                  )),
                ];
              })}
            </tbody>
          </table>
          {total > limit && (
            <button type="button" class="link-button" onClick={() => setLimit(limit + 2_000)}>
              Show more ({count(total - limit, "line")} left)
            </button>
          )}
        </div>
      )}
    </details>
  );
}
