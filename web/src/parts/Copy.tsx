// Button that copies a text.

import { useState } from "preact/hooks";
import { announce, notify } from "../app/announce.ts";

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      announce("Copied");
      setTimeout(() => setDone(false), 2_000);
    } catch {
      notify("The browser did not allow copying. Select the text and copy it.", true);
    }
  };
  return (
    <button type="button" class="small-button copy" onClick={() => void copy()}>
      {done ? "Copied" : label}
    </button>
  );
}
