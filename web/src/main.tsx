// Entry of the page.

// First, so that the token of a pairing link leaves the address before anything else runs.
import "./pair/token.ts";
import { render } from "preact";
import "./app/theme.ts";
import { App } from "./app/App.tsx";
import { startEvents } from "./hub/events.ts";
import { pairing, startSession } from "./hub/session.ts";
import "./styles/index.css";

const root = document.getElementById("app");
if (root) render(<App />, root);

let started = false;
pairing.subscribe((state) => {
  if (state !== "paired" || started) return;
  started = true;
  startEvents();
});
void startSession();
