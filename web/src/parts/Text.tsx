// Texts of agents as text nodes, with misleading characters made visible.

import type { JSX } from "preact";
import { type Segment, exactSegments, lineSegments, proseSegments } from "../text/visible.ts";

function render(segments: Segment[]): (string | JSX.Element)[] {
  return segments.map((segment) => {
    if (segment.kind === "text") return segment.text;
    return segment.kind === "escape" ? (
      <span
        class="hidden-character"
        title={segment.codes === undefined ? "Characters that are not seen" : `${segment.codes}: not seen`}
      >
        {segment.text}
      </span>
    ) : (
      <span class="foreign-character" title={segment.codes}>
        {segment.text}
      </span>
    );
  });
}

/** Text for people. */
export function Prose({ text }: { text: string }) {
  return <>{render(proseSegments(text))}</>;
}

/** Text for people in a line that may be cut: few marks, each shown as a whole or not at all. */
export function Line({ text }: { text: string }) {
  return <span class="line">{render(lineSegments(text))}</span>;
}

/** A command, a path or code: shown exactly as it is. */
export function Exact({ text }: { text: string }) {
  return (
    <bdi dir="ltr" class="exact">
      {render(exactSegments(text))}
    </bdi>
  );
}
