// Makes characters visible that change how a text reads without being seen (CVE-2021-42574,
// UTS 55).

export interface Segment {
  kind: "text" | "escape" | "foreign";
  text: string;
  /** Code points of the segment, for a title: `U+202E U+200B`. */
  codes?: string;
}

/** Hidden characters of a text that are shown as escapes; the rest is counted. */
const MOST_ESCAPES = 200;
/** The same where one line is all there is. */
const MOST_ESCAPES_IN_LINE = 4;
/** Code points that a title names. */
const MOST_CODES = 8;

// Combining marks, joiners and skin tones in a row. Browsers shape them as one character, in
// quadratic time; no language needs more than a few.
const COMBINING = String.raw`[\p{M}\p{Emoji_Modifier}\u200c\u200d]`;
const MARKS = String.raw`(?<marks>${COMBINING}{9,})`;

// Bidirectional controls, and controls that terminals and browsers do not show.
const PROSE = new RegExp(
  String.raw`${MARKS}|(?<hidden>[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]+)`,
  "gu",
);

// The same, and what looks like a space or like nothing; then characters that are not ASCII.
const EXACT_HIDDEN = String.raw`\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\u{e0000}-\u{e0fff}\ud800-\udfff`;
const EXACT = new RegExp(
  String.raw`(?<hidden>[${EXACT_HIDDEN}]+)|${MARKS}|(?<foreign>(?:(?!${COMBINING}{9})[^\u0000-\u007f${EXACT_HIDDEN}])+)`,
  "gu",
);

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Segments of a text of an agent for people: only controls are replaced. */
export function proseSegments(text: string): Segment[] {
  return split(text, PROSE, MOST_ESCAPES);
}

/** Segments of a text for people in a list, where a line shows only its beginning. */
export function lineSegments(text: string): Segment[] {
  return split(text, PROSE, MOST_ESCAPES_IN_LINE);
}

/** Segments of a command, a path or a file: every character that may mislead is marked. */
export function exactSegments(text: string): Segment[] {
  return split(text, EXACT, MOST_ESCAPES);
}

function split(source: string, pattern: RegExp, mostEscapes: number): Segment[] {
  // A carriage return before a line feed is a line end of Windows.
  const text = source.replace(/\r\n/g, "\n");
  const segments: Segment[] = [];
  let plain = "";
  let end = 0;
  let [left, more] = [mostEscapes, 0];
  const push = (segment: Segment) => {
    if (plain !== "") segments.push({ kind: "text", text: plain });
    plain = "";
    segments.push(segment);
  };
  for (const match of text.matchAll(pattern)) {
    const { hidden, marks, foreign } = match.groups ?? {};
    plain += text.slice(end, match.index);
    end = match.index + match[0].length;
    if (marks !== undefined) {
      push({ kind: "escape", text: countText([...marks].length, "combining marks"), codes: codesOf(marks) });
    } else if (foreign !== undefined) {
      push({ kind: "foreign", text: foreign, codes: codesOf(foreign) });
    } else if (hidden !== undefined) {
      const characters = [...hidden];
      const shown = characters.slice(0, left);
      left -= shown.length;
      more += characters.length - shown.length;
      if (shown.length > 0) push({ kind: "escape", text: shown.map(escapeOf).join(""), codes: codesOf(hidden) });
      // The place of those that are only counted.
      if (shown.length < characters.length) plain += "\ufffd";
    }
  }
  plain += text.slice(end);
  if (more > 0) push({ kind: "escape", text: countText(more, more === 1 ? "more hidden character" : "more hidden characters") });
  else if (plain !== "") segments.push({ kind: "text", text: plain });
  return segments;
}

function countText(number: number, what: string): string {
  return `[${number.toLocaleString("en")} ${what}]`;
}

/** The text with escapes in place of hidden characters, for attributes such as titles. */
export function visibleText(text: string): string {
  return lineSegments(text)
    .map((it) => it.text)
    .join("");
}

/** Names of the first code points of a text. */
function codesOf(text: string): string {
  const names: string[] = [];
  for (const character of text) {
    if (names.length === MOST_CODES) return `${names.join(" ")} …`;
    names.push(codeName(character.codePointAt(0) ?? 0));
  }
  return names.join(" ");
}

/** Name of a code point: `U+202E`. */
function codeName(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
