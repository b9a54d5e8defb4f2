// Markdown in one line without its marks, for titles.

/** Longest text that is read, in characters; a title shows fewer. */
const MAX_TEXT = 600;
const MAX_DEPTH = 6;

// A mark counts only at the border of a word: `2*3*4`, `a_b_c` and `src/**/*.rs` stay.
const BEFORE = String.raw`(?<=^|[\s("'\[])`;
const AFTER = String.raw`(?=$|[\s.,;:!?)"'\]])`;

const MARKED = new RegExp(
  [
    String.raw`(?<ticks>\x60+)(?<code>[^\x60]+)\k<ticks>(?!\x60)`,
    String.raw`!?\[(?<label>[^\[\]]+)\]\((?:<[^<>]*>|[^()\s]*)(?:\s+"[^"]*")?\)`,
    String.raw`${BEFORE}(?<mark>\*{1,3}|_{1,3}|~~)(?=[^\s*_~])(?<marked>.+?)(?<=[^\s*_~]|[\x60)])\k<mark>${AFTER}`,
  ].join("|"),
  "gu",
);

/** The text in one line, without the marks of headings, emphasis, code and links. */
export function plainLine(text: string): string {
  const line = text
    .slice(0, MAX_TEXT)
    .replace(/^ {0,3}#{1,6}[ \t]+/gm, "")
    .replace(/`{3,}[\w+-]*/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    // The hub joins lines: a heading may be in the middle.
    .replace(/(^|\s)#{2,6}\s/g, "$1");
  return strip(line, 0);
}

function strip(text: string, depth: number): string {
  if (depth >= MAX_DEPTH) return text;
  return text.replace(MARKED, (whole, ...rest) => {
    const { code, label, mark, marked } = rest.at(-1) as Record<string, string | undefined>;
    if (code !== undefined) return code.trim();
    if (label !== undefined) return strip(label, depth + 1);
    // A name of Python, such as `__init__`.
    if (mark === "__" && /^\w+$/.test(marked ?? "")) return whole;
    return strip(marked ?? "", depth + 1);
  });
}
