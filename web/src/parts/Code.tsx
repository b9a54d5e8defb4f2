// Block of code or output; long ones are cut and wide ones scroll.

import { Exact } from "./Text.tsx";
import { LongText } from "./LongText.tsx";

export function Code({ text, label, lines = 40 }: { text: string; label?: string | undefined; lines?: number }) {
  return (
    <div class="code">
      <LongText text={text} lines={lines}>
        {(shown) => (
          // Focusable, so that the keyboard can scroll it.
          <pre tabIndex={0} role="group" aria-label={label ?? "Code"}>
            <code>
              <Exact text={shown} />
            </code>
          </pre>
        )}
      </LongText>
    </div>
  );
}
