// Texts of agents as text nodes, with misleading characters made visible.

import type { JSX } from "preact";
import { type Segment, codeName, exactSegments, proseSegments } from "../text/visible.ts";

function render(segments: Segment[]): (string | JSX.Element)[] {
  return segments.map((segment) => {
    if (segment.kind === "text") return segment.text;
    const title = codeName(segment.code ?? 0);
    return segment.kind === "escape" ? (
      <span class="hidden-character" title={`${title}: a character that is not seen`}>
        {segment.text}
      </span>
    ) : (
      <span class="foreign-character" title={title}>
        {segment.text}
      </span>
    );
  });
}

/** Text for people. */
export function Prose({ text }: { text: string }) {
  return <>{render(proseSegments(text))}</>;
}

/** A command, a path or code: shown exactly as it is. */
export function Exact({ text }: { text: string }) {
  return (
    <bdi dir="ltr" class="exact">
      {render(exactSegments(text))}
    </bdi>
  );
}
