// Events of the hub, from one stream a browser: the tab that holds a lock reads, others listen.

import { stream } from "./call.ts";
import { HubError } from "./request.ts";
import { connection, epoch, pairing } from "./session.ts";
import { reportUnreachable } from "./reachability.ts";
import type { HubEvent } from "./types.ts";

/** What changed since the last report; `all` after events may have been missed. */
export interface Changes {
  all: boolean;
  tasks: Set<string>;
  agents: boolean;
  notices: boolean;
}

type Listener = (changes: Changes) => void;
type Broadcast = { type: "event"; event: HubEvent } | { type: "resync" } | { type: "down" };

/** Shortest time between two reports to the views, in milliseconds. */
const REPORT_INTERVAL = 400;
/** The same while much happens. */
const BUSY_INTERVAL = 1_200;
/** Tasks that changed since the last report, from which on much happens. */
const BUSY_TASKS = 12;

const listeners = new Set<Listener>();
let pending: Changes = empty();
let timer: ReturnType<typeof setTimeout> | undefined;
let lastReport = 0;
let received = 0;

function empty(): Changes {
  return { all: false, tasks: new Set(), agents: false, notices: false };
}

/** Calls `listener` with what changed, a few times a second at most, and never in a hidden tab. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function hasPending(): boolean {
  return pending.all || pending.agents || pending.notices || pending.tasks.size > 0;
}

function schedule(): void {
  if (timer !== undefined || document.hidden || !hasPending()) return;
  const since = Date.now() - lastReport;
  const interval = pending.tasks.size >= BUSY_TASKS ? BUSY_INTERVAL : REPORT_INTERVAL;
  const wait = Math.max(30, interval - since);
  timer = setTimeout(() => {
    timer = undefined;
    if (document.hidden) return;
    if (pending.tasks.size >= BUSY_TASKS && Date.now() - lastReport < BUSY_INTERVAL) {
      schedule();
      return;
    }
    lastReport = Date.now();
    const changes = pending;
    pending = empty();
    for (const listener of [...listeners]) listener(changes);
  }, wait);
}

/** Number of messages so far: tells whether anything happened since. */
export function eventCount(): number {
  return received;
}

function take(message: Broadcast): void {
  received += 1;
  if (message.type === "event") {
    const event = message.event;
    // `questions-changed` as well: the inbox and the task read their questions again.
    if (event.taskId !== undefined) pending.tasks.add(event.taskId);
    if (event.type.startsWith("agent-") || event.type.startsWith("plugin-")) pending.agents = true;
    if (event.type === "notices-changed") pending.notices = true;
    if (event.type.startsWith("storage-") || event.type === "config-reloaded") pending.all = true;
    // A hidden tab keeps no list that grows for hours.
    if (pending.tasks.size > 2_000) pending = { ...empty(), all: true };
  } else if (message.type === "resync") {
    pending.all = true;
    if (connection.value === "connecting") connection.value = "online";
  } else if (connection.value === "online") {
    reportUnreachable("offline");
  }
  schedule();
}

/** Starts to take part: as reader if no other tab reads. */
export function startEvents(): void {
  const channel = new BroadcastChannel("a2a-hub-events");
  channel.onmessage = (message: MessageEvent<Broadcast>) => take(message.data);
  const share = (message: Broadcast) => {
    channel.postMessage(message);
    take(message);
  };
  document.addEventListener("visibilitychange", schedule);
  epoch.subscribe((value) => {
    if (value > 0) take({ type: "resync" });
  });
  let abort = new AbortController();
  const lead = () => {
    abort = new AbortController();
    const { signal } = abort;
    if (!navigator.locks) {
      void read(share, signal);
      return;
    }
    navigator.locks.request("a2a-hub-events", { signal }, () => read(share, signal)).catch(() => undefined);
  };
  lead();
  // A page in the back/forward cache must not keep the lock.
  window.addEventListener("pagehide", () => abort.abort());
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    take({ type: "resync" });
    lead();
  });
}

async function read(share: (message: Broadcast) => void, abort: AbortSignal): Promise<void> {
  let pause = 500;
  while (!abort.aborted) {
    if (pairing.value === "paired") {
      try {
        for await (const { value } of stream<HubEvent & { reason?: string }>("hub/events", {}, abort)) {
          if (value.type === "subscribed") {
            pause = 500;
            share({ type: "resync" });
          } else if (value.type !== undefined) {
            share({ type: "event", event: value });
          }
        }
      } catch (error) {
        if (error instanceof HubError && error.kind === "network" && !abort.aborted) share({ type: "down" });
      }
    }
    if (abort.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, pause * (0.75 + Math.random() / 2)));
    pause = Math.min(10_000, pause * 2);
  }
}
