// Live region: short texts for screen readers, and for everybody as a note at the bottom.

import { signal } from "@preact/signals";

export interface Note {
  id: number;
  text: string;
  isError: boolean;
}

/** Text for screen readers only. */
export const spoken = signal("");

/** The note that is shown. */
export const note = signal<Note | undefined>(undefined);

let nextId = 1;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says a text to screen readers. */
export function announce(text: string): void {
  // The same text again is read only if the region changes.
  spoken.value = spoken.value === text ? `${text}\u00a0` : text;
}

/** Shows a note for some seconds; errors stay until they are closed. */
export function notify(text: string, isError = false): void {
  note.value = { id: nextId++, text, isError };
  clearTimeout(timer);
  if (!isError) timer = setTimeout(closeNote, 6_000);
}

/** Closes the note. */
export function closeNote(): void {
  note.value = undefined;
}
