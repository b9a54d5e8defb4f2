// Long text that is cut until somebody asks for all of it.

import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { count } from "../text/words.ts";

interface Props {
  text: string;
  /** Most characters and lines that are shown at first. */
  limit?: number;
  lines?: number;
  children: (shown: string) => ComponentChildren;
}

/** End of the part of a text within a number of characters and lines. */
export function visibleEnd(text: string, limit: number, lines: number): number {
  let end = -1;
  for (let line = 0; line < lines; line += 1) {
    end = text.indexOf("\n", end + 1);
    if (end < 0 || end > limit) return Math.min(text.length, limit);
  }
  return end;
}

export function LongText({ text, limit = 6_000, lines = 60, children }: Props) {
  const [all, setAll] = useState(false);
  const end = all ? text.length : visibleEnd(text, limit, lines);
  return (
    <>
      {children(text.slice(0, end))}
      {end < text.length && (
        <button type="button" class="link-button" onClick={() => setAll(true)}>
          Show all ({count(text.length, "character")})
        </button>
      )}
    </>
  );
}
