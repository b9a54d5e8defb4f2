// Media queries as signals.

import { type Signal, signal } from "@preact/signals";

function media(query: string): Signal<boolean> {
  const list = window.matchMedia(query);
  const result = signal(list.matches);
  list.addEventListener("change", () => {
    result.value = list.matches;
  });
  return result;
}

/** Room for a list and a detail side by side. */
export const isWide = media("(min-width: 960px)");

/** Room for a table. */
export const isRoomy = media("(min-width: 760px)");
