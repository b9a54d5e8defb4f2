// Text in place of an empty list: what is so, and what to do next.

import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      {title !== undefined && <p class="empty-title">{title}</p>}
      {children}
    </div>
  );
}
