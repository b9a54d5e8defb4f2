// The time, for relative times on the screen; does not run in a hidden tab.

import { signal } from "@preact/signals";

export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = Date.now();
});
