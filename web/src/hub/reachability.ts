// Watches whether the hub answers, and asks again with back-off while it does not.

import { connection, epoch, pairing, retryAt } from "./session.ts";
import { post } from "./request.ts";

const LONGEST_PAUSE = 10_000;

let pause = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Reports that a call was answered. */
export function reportReachable(): void {
  if (timer !== undefined) return;
  if (connection.value === "online") return;
  const wasAway = connection.value !== "connecting";
  connection.value = "online";
  pause = 0;
  if (wasAway) epoch.value += 1;
}

/** Reports that a call was not answered; starts to ask again. */
export function reportUnreachable(state: "offline" | "starting"): void {
  connection.value = state;
  if (timer === undefined) schedule();
}

/** Asks now, because the user or the browser's network says so. */
export function tryNow(): void {
  if (timer === undefined) return;
  clearTimeout(timer);
  pause = 0;
  void ask();
}

function schedule(): void {
  pause = Math.min(LONGEST_PAUSE, pause === 0 ? 500 : pause * 2);
  // A random part keeps many tabs from asking at the same moment.
  const wait = pause * (0.75 + Math.random() / 2);
  retryAt.value = Date.now() + wait;
  timer = setTimeout(() => void ask(), wait);
}

async function ask(): Promise<void> {
  if (pairing.value !== "paired") {
    timer = undefined;
    return;
  }
  try {
    // A list of tasks and not `hub/ping`, which a starting hub answers already.
    const response = await post("/", '{"jsonrpc":"2.0","id":0,"method":"hub/tasks/list","params":{"limit":1,"summary":true}}');
    const answer = (await response.json()) as { error?: { data?: { reason?: string } } };
    const reason = answer.error?.data?.reason;
    if (!response.ok || reason === "starting" || reason === "stopping") {
      connection.value = "starting";
      schedule();
      return;
    }
    timer = undefined;
    reportReachable();
  } catch {
    connection.value = "offline";
    schedule();
  }
}

window.addEventListener("online", tryNow);
