// Drafts: what was typed and not yet sent, kept across restarts of the page and the hub.

import { useState } from "preact/hooks";
import { read, write } from "./storage.ts";

/** State of a text field that survives a restart. Sending clears it by an empty text. */
export function useDraft(name: string): [string, (text: string) => void] {
  const key = `draft.${name}`;
  const [state, setState] = useState({ key, text: read(key) });
  const text = state.key === key ? state.text : read(key);
  return [
    text,
    (next) => {
      write(key, next);
      setState({ key, text: next });
    },
  ];
}
