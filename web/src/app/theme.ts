// Colour theme: that of the system, or the user's choice.

import { effect, signal } from "@preact/signals";
import { read, write } from "./storage.ts";

export type Theme = "system" | "light" | "dark";

function stored(): Theme {
  const text = read("theme");
  return text === "light" || text === "dark" ? text : "system";
}

export const theme = signal<Theme>(stored());

/** Goes on to the next theme. */
export function nextTheme(): void {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
  write("theme", theme.value === "system" ? "" : theme.value);
}

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
