// Title of the browser's tab: what is shown, after the number of open questions.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { cut } from "../text/words.ts";
import { visibleText } from "../text/visible.ts";

/** Title of the shown thing, in place of the name of its screen. */
export const shownTitle = signal("");

/** Names the shown thing in the title, as long as the component is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    shownTitle.value = visibleText(cut(title, 60));
    return () => {
      shownTitle.value = "";
    };
  }, [title]);
}
