// Pages for a browser that has no access: not paired, removed, or without cryptography.

import { Command } from "../parts/Command.tsx";

export function NotPaired({ isRemoved }: { isRemoved: boolean }) {
  return (
    <main class="plain-page">
      <p class="brand">a2a-hub</p>
      <h1>{isRemoved ? "This browser was removed" : "This browser is not paired"}</h1>
      <p>
        {isRemoved
          ? "The hub does not accept the key of this browser any more."
          : "The page shows tasks and answers questions only in a browser that you paired with the hub."}{" "}
        Pair it from a terminal on the machine of the hub:
      </p>
      <Command text="a2a-hub web" />
      <p class="muted">The command opens the page and asks you to compare a code.</p>
    </main>
  );
}

export function Insecure() {
  return (
    <main class="plain-page">
      <p class="brand">a2a-hub</p>
      <h1>This address is not secure</h1>
      <p>
        The browser gives a page its keys only over TLS, or from its own machine. This page came from{" "}
        <code>{location.origin}</code>. Open it in one of these ways:
      </p>
      <ul>
        <li>
          On the machine of the hub: <code>http://127.0.0.1:{location.port || "80"}/ui/</code>
        </li>
        <li>
          From another machine, through SSH:
          <Command text={`ssh -L ${location.port || "8080"}:127.0.0.1:${location.port || "8080"} ${location.hostname}`} />
          Then open <code>http://127.0.0.1:{location.port || "8080"}/ui/</code>.
        </li>
        <li>Behind a proxy with TLS.</li>
      </ul>
      <p class="muted">A private window of some browsers stores no keys either.</p>
    </main>
  );
}
