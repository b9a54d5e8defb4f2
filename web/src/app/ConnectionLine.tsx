// Says whether the hub answers, and when the page asks again.

import { useEffect, useState } from "preact/hooks";
import { connection, retryAt } from "../hub/session.ts";
import { tryNow } from "../hub/reachability.ts";

const TEXTS = {
  connecting: "Connecting",
  online: "Connected",
  starting: "The hub is starting",
  offline: "The hub cannot be reached",
} as const;

export function ConnectionLine() {
  const state = connection.value;
  const isAway = state === "offline" || state === "starting";
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isAway) return;
    const timer = setInterval(() => tick((it) => it + 1), 500);
    return () => clearInterval(timer);
  }, [isAway]);
  const wait = Math.max(0, Math.ceil((retryAt.value - Date.now()) / 1000));
  return (
    <div class={`connection connection-${state}`}>
      <span role="status">
        <span class="connection-dot" aria-hidden="true" />
        <span class="connection-text">{TEXTS[state]}</span>
      </span>
      {isAway && (
        <>
          <span class="connection-detail" aria-hidden="true">
            {wait > 0 ? `asks again in ${wait} s` : "asks again"}. What you typed is kept.
          </span>
          <button type="button" class="small-button" onClick={tryNow}>
            Try now
          </button>
        </>
      )}
    </div>
  );
}
