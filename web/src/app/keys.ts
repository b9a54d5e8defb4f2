// Keyboard shortcuts: single keys and two-key sequences, off while a text field has the focus.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { read, write } from "./storage.ts";

export interface Shortcut {
  /** `j`, `Enter`, or a sequence such as `g i`. */
  key: string;
  /** Text in the list of shortcuts; without it, the shortcut is an alias. */
  text?: string;
  run: () => void;
}

interface Group {
  title: string;
  shortcuts: Shortcut[];
}

/** Groups in force, the innermost last. */
export const groups = signal<Group[]>([]);

/** WCAG 2.1.4: single-key shortcuts can be turned off. */
export const shortcutsEnabled = signal(read("shortcuts") !== "off");

/** Turns single-key shortcuts on or off. */
export function setShortcutsEnabled(on: boolean): void {
  shortcutsEnabled.value = on;
  write("shortcuts", on ? "" : "off");
}

/** Offers shortcuts as long as the component is shown. */
export function useShortcuts(title: string, shortcuts: Shortcut[], enabled = true): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const keys = shortcuts.map((it) => `${it.key}:${it.text ?? ""}`).join("|");
  useEffect(() => {
    if (!enabled) return;
    const group: Group = {
      title,
      shortcuts: latest.current.map((it, at) => ({ ...it, run: () => latest.current[at]?.run() })),
    };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((it) => it !== group);
    };
  }, [title, keys, enabled]);
}

function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit"].includes(target.type);
}

let first = "";
let firstAt = 0;

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  if (isTextField(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !shortcutsEnabled.value) return;
  if (document.querySelector("dialog[open]")) return;
  // Enter and Space belong to the focused control.
  const control = event.target instanceof Element && event.target.closest("a,button,summary,input,[role=tab]");
  if (control && (event.key === " " || (event.key === "Enter" && !control.matches("[data-row]")))) return;
  const sequence = first !== "" && Date.now() - firstAt < 1_200 ? `${first} ${event.key}` : "";
  first = "";
  for (const group of [...groups.value].reverse()) {
    const found = group.shortcuts.find((it) => it.key === sequence) ?? group.shortcuts.find((it) => it.key === event.key);
    if (found) {
      event.preventDefault();
      found.run();
      return;
    }
  }
  if (groups.value.some((group) => group.shortcuts.some((it) => it.key.startsWith(`${event.key} `)))) {
    first = event.key;
    firstAt = Date.now();
  }
}

window.addEventListener("keydown", onKeyDown);
