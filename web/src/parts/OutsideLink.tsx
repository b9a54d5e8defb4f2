// Link of an agent to another site; one that may not be followed is shown as text.

import type { ComponentChildren } from "preact";
import { safeLink, saysTarget } from "../text/links.ts";
import { Exact, Prose } from "./Text.tsx";

interface Props {
  href: string;
  /** Text of the link, to compare with its target. */
  text: string;
  children?: ComponentChildren;
}

export function OutsideLink({ href, text, children }: Props) {
  const link = safeLink(href);
  if (!link) {
    return (
      <>
        {children ?? <Prose text={text} />}
        {text.trim() !== href.trim() && (
          <span class="muted">
            {" "}
            (<Exact text={href} />)
          </span>
        )}
      </>
    );
  }
  return (
    <>
      <a href={link.href} target="_blank" rel="noopener noreferrer nofollow" title={link.href}>
        {children ?? <Prose text={text} />}
      </a>
      {!saysTarget(text, link) && (
        <span class="link-target">
          {" "}
          (<Exact text={link.target} />)
        </span>
      )}
    </>
  );
}
