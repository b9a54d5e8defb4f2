// Small texts in localStorage; a browser that refuses to store loses them without an error.

const PREFIX = "a2a-hub.";

/** Reads a text; empty if absent. */
export function read(name: string): string {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

/** Stores a text; an empty one removes it. */
export function write(name: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, text);
  } catch {
    // Full or forbidden storage.
  }
}
