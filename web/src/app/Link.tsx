// Link to another screen, which opens without loading the page again.

import type { ComponentChildren } from "preact";
import { BASE, go } from "./router.ts";

interface Props {
  to: string;
  class?: string | undefined;
  current?: boolean;
  label?: string;
  title?: string;
  /** True for a row of a list, whose screen handles Enter. */
  isRow?: boolean;
  children: ComponentChildren;
}

export function Link({ to, current, label, isRow = false, children, ...rest }: Props) {
  const onClick = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={BASE + to} onClick={onClick} aria-current={current ? "page" : undefined} aria-label={label} data-row={isRow ? "" : undefined} {...rest}>
      {children}
    </a>
  );
}
