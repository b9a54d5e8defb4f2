// Frame of all screens: navigation, connection, notes and the keys that work everywhere.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { call } from "../hub/call.ts";
import { eventCount } from "../hub/events.ts";
import { useQuery } from "../hub/use-query.ts";
import { failure, limit, readQuestions, total } from "../inbox/feed.ts";
import { Prose } from "../parts/Text.tsx";
import { announce, closeNote, note, spoken } from "./announce.ts";
import { ConnectionLine } from "./ConnectionLine.tsx";
import { useShortcuts } from "./keys.ts";
import { Link } from "./Link.tsx";
import { address, go } from "./router.ts";
import { ShortcutList } from "./ShortcutList.tsx";
import { nextTheme, theme } from "./theme.ts";
import { shownTitle } from "./title.ts";

const SCREENS = [
  { path: "", key: "g i", name: "Inbox" },
  { path: "tasks", key: "g t", name: "Tasks" },
  { path: "send", key: "g s", name: "Send" },
  { path: "agents", key: "g a", name: "Agents" },
];

const THEMES = { system: "system", light: "light", dark: "dark" } as const;

export function Shell({ children }: { children: ComponentChildren }) {
  const [showsKeys, setShowsKeys] = useState(false);
  const questions = useQuery(`questions ${limit.value}`, readQuestions, {
    concerns: (changes) => changes.tasks.size > 0,
    // A question that expired elsewhere, after events were missed.
    every: 60_000,
  });
  useEffect(() => {
    failure.value = questions.error;
  }, [questions.error]);
  useShortcuts("Everywhere", [
    ...SCREENS.map((screen) => ({ key: screen.key, text: screen.name, run: () => go(screen.path) })),
    { key: "/", text: "Search, or the first text field", run: focusSearch },
    { key: "?", text: "These keys", run: () => setShowsKeys(true) },
  ]);
  const section = address.value.path.split("/")[0] ?? "";
  const screen = SCREENS.find((it) => it.path === section);
  useEffect(() => {
    const open = total.value > 0 ? `(${total.value}) ` : "";
    document.title = `${open}${shownTitle.value || (screen?.name ?? "Not found")} · a2a-hub`;
  }, [total.value, shownTitle.value, screen?.name]);
  useCountWhileHidden();
  const isFirst = useRef(true);
  useEffect(() => {
    // Screen readers hear of the new screen, and Tab begins at its start.
    if (!isFirst.current) {
      document.getElementById("main")?.focus({ preventScroll: true });
      announce(screen?.name ?? "");
    }
    isFirst.current = false;
  }, [address.value.path]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="bar">
        <Link to="" class="brand" label="a2a-hub: inbox">
          a2a-hub
        </Link>
        <nav class="screens" aria-label="Screens">
          {SCREENS.map((it) => (
            <Link key={it.path} to={it.path} current={it.path === section}>
              {it.name}
              {it.path === "" && total.value > 0 && (
                <span class="badge" aria-label={`${total.value} open`}>
                  {total.value}
                </span>
              )}
            </Link>
          ))}
        </nav>
        <div class="bar-end">
          <ConnectionLine />
          <button type="button" class="quiet-button" onClick={nextTheme} title="Change the colours">
            Theme: {THEMES[theme.value]}
          </button>
          <button type="button" class="quiet-button" onClick={() => setShowsKeys(true)} title="Keyboard shortcuts">
            Keys <kbd>?</kbd>
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <div class="visually-hidden" aria-live="polite" role="status">
        {spoken.value}
      </div>
      <div class="note-area" aria-live="polite">
        {note.value && (
          <div class={note.value.isError ? "note note-error" : "note"} key={note.value.id}>
            <p>
              <Prose text={note.value.text} />
            </p>
            <button type="button" class="small-button" onClick={closeNote}>
              Close
            </button>
          </div>
        )}
      </div>
      {showsKeys && <ShortcutList onClose={() => setShowsKeys(false)} />}
    </div>
  );
}

/** Keeps the number in the title of a hidden tab right, with one small request after changes. */
function useCountWhileHidden(): void {
  useEffect(() => {
    let seen = eventCount();
    const timer = setInterval(() => {
      if (!document.hidden || eventCount() === seen) return;
      seen = eventCount();
      call<{ total: number }>("hub/questions/list", { limit: 1 })
        .then((result) => {
          if (document.hidden) total.value = result.total;
        })
        .catch(() => undefined);
    }, 10_000);
    return () => clearInterval(timer);
  }, []);
}

function focusSearch(): void {
  const field = document.querySelector<HTMLElement>("[data-search]") ?? document.querySelector<HTMLElement>("main textarea, main input[type=text]");
  field?.focus();
}
