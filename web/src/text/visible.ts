// Makes characters visible that change how a text reads without being seen (CVE-2021-42574,
// UTS 55).

export type Segment = { kind: "text" | "escape" | "foreign"; text: string; code?: number };

// Bidirectional controls, and controls that terminals and browsers do not show.
const PROSE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

// The same, and what looks like a space or like nothing; then letters that are not ASCII.
const EXACT =
  /(?<hidden>[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff])|(?<foreign>[^\u0000-\u007f])/gu;

function escapeOf(code: number): string {
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Segments of a text of an agent for people: only controls are replaced. */
export function proseSegments(text: string): Segment[] {
  return split(text, PROSE, false);
}

/** Segments of a command, a path or a file: every character that may mislead is marked. */
export function exactSegments(text: string): Segment[] {
  return split(text, EXACT, true);
}

function split(text: string, pattern: RegExp, marksForeign: boolean): Segment[] {
  const segments: Segment[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const code = match[0].codePointAt(0) ?? 0;
    // A carriage return before a line feed is a line end of Windows.
    if (code === 13 && text[match.index + 1] === "\n") {
      if (match.index > end) segments.push({ kind: "text", text: text.slice(end, match.index) });
      end = match.index + 1;
      continue;
    }
    if (match.index > end) segments.push({ kind: "text", text: text.slice(end, match.index) });
    if (marksForeign && match.groups?.foreign !== undefined) {
      segments.push({ kind: "foreign", text: match[0], code });
    } else {
      segments.push({ kind: "escape", text: escapeOf(code), code });
    }
    end = match.index + match[0].length;
  }
  if (end < text.length) segments.push({ kind: "text", text: text.slice(end) });
  return segments;
}

/** The text with escapes in place of hidden characters, for attributes such as titles. */
export function visibleText(text: string): string {
  return proseSegments(text)
    .map((it) => it.text)
    .join("");
}

/** Name of a code point for a title: `U+202E`. */
export function codeName(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
