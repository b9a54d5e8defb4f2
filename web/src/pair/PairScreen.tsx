// Pairing: shows the code that the user compares with the one in the terminal.

import { useEffect, useState } from "preact/hooks";
import { go } from "../app/router.ts";
import { Command } from "../parts/Command.tsx";
import { Prose } from "../parts/Text.tsx";
import { type PairState, pair } from "./pair.ts";
import { takeToken } from "./token.ts";

export function PairScreen() {
  const [state, setState] = useState<PairState>({ kind: "starting" });
  useEffect(() => {
    const abort = new AbortController();
    const token = takeToken();
    if (token === "") setState({ kind: "expired" });
    else {
      pair(token, setState, abort.signal).catch((error: unknown) => {
        setState({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
      });
    }
    return () => abort.abort();
  }, []);
  useEffect(() => {
    if (state.kind === "done") go("", { replace: true });
  }, [state.kind]);
  return (
    <main class="plain-page" aria-live="polite">
      <p class="brand">a2a-hub</p>
      <PairBody state={state} />
    </main>
  );
}

function PairBody({ state }: { state: PairState }) {
  switch (state.kind) {
    case "starting":
    case "done":
      return <h1>Pairing this browser</h1>;
    case "compare":
      return (
        <>
          <h1>Compare this code</h1>
          <p class="pair-code" aria-label={state.code.split("").join(" ")}>
            {state.code}
          </p>
          <p>Compare this code with the one in your terminal and say yes there. The page goes on by itself.</p>
          <p class="muted">If the codes differ, say no: another program asked for access.</p>
        </>
      );
    case "refused":
      return (
        <>
          <h1>Not paired</h1>
          <p>
            <Prose text={state.message} />
          </p>
          <Again />
        </>
      );
    case "expired":
      return (
        <>
          <h1>This link cannot be used any more</h1>
          <p>A link pairs one browser, once, within a minute.</p>
          <Again />
        </>
      );
    case "failed":
      return (
        <>
          <h1>Pairing failed</h1>
          <p role="alert">
            <Prose text={state.message} />
          </p>
          <Again />
        </>
      );
  }
}

function Again() {
  return (
    <>
      <p>To try again, run in a terminal:</p>
      <Command text="a2a-hub web" />
    </>
  );
}
