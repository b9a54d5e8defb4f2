// Command for a terminal, with a button to copy it.

import { Copy } from "./Copy.tsx";
import { Exact } from "./Text.tsx";

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>
        <Exact text={text} />
      </code>
      <Copy text={text} />
    </div>
  );
}
