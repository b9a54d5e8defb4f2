// Exchange of the token of `a2a-hub web` for the access of this browser.

import { createKeys, storeDevice } from "../hub/device.ts";
import { correctClock, createProof } from "../hub/dpop.ts";
import { currentDevice, useDevice } from "../hub/session.ts";

/** Interval at which the page asks whether the terminal said yes, in milliseconds. */
const POLL_INTERVAL = 700;
/** Failed requests in a row after which the page gives up. */
const MOST_FAILURES = 20;

export type PairState =
  | { kind: "starting" }
  | { kind: "compare"; code: string }
  | { kind: "done" }
  | { kind: "refused"; message: string }
  | { kind: "expired" }
  | { kind: "failed"; message: string };

interface PairAnswer {
  pairing?: string;
  code?: string;
  accessToken?: string;
  device?: { id: string; name: string };
  error?: { message?: string };
}

/** Name of this browser for the hub's list of devices: `Chromium on Linux`. */
export function deviceName(agent: string): string {
  const browser = /Firefox\//.test(agent)
    ? "Firefox"
    : /Edg\//.test(agent)
      ? "Edge"
      : /OPR\//.test(agent)
        ? "Opera"
        : /Chrom(e|ium)\//.test(agent)
          ? "Chromium"
          : /Safari\//.test(agent)
            ? "Safari"
            : "Browser";
  const system = /Android/.test(agent)
    ? "Android"
    : /iPhone|iPad/.test(agent)
      ? "iOS"
      : /Mac OS X/.test(agent)
        ? "macOS"
        : /Windows/.test(agent)
          ? "Windows"
          : /Linux|X11/.test(agent)
            ? "Linux"
            : "";
  return system === "" ? browser : `${browser} on ${system}`;
}

/**
 * Pairs this browser; reports each step. A browser whose key the hub knows stays the device that it
 * is: the hub then ends the offered pairing.
 */
export async function pair(token: string, report: (state: PairState) => void, abort: AbortSignal): Promise<void> {
  report({ kind: "starting" });
  let known = currentDevice();
  let keys = known?.keys ?? (await createKeys());
  const body = JSON.stringify({ token, name: deviceName(navigator.userAgent) });
  let [failures, corrected] = [0, false];
  while (!abort.aborted) {
    let response: Response;
    try {
      response = await fetch("/ui/pair", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(known ? { authorization: `DPoP ${known.accessToken}` } : {}),
          dpop: await createProof(keys, "/ui/pair", known?.accessToken),
        },
        body,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        signal: abort,
      });
    } catch {
      if (abort.aborted) return;
      failures += 1;
      if (failures >= MOST_FAILURES) {
        report({ kind: "failed", message: "The hub cannot be reached." });
        return;
      }
      await pause();
      continue;
    }
    failures = 0;
    const answer = (await response.json().catch(() => ({}))) as PairAnswer;
    if (known) {
      if (response.status === 200 && answer.pairing === "paired") {
        report({ kind: "done" });
        return;
      }
      if (response.status >= 500) {
        report({ kind: "failed", message: answer.error?.message ?? `The hub answered ${response.status}.` });
        return;
      }
      // The clock of the proof may be the reason, so it is right for the new key.
      if (response.status >= 400) correctClock(response.headers.get("date"));
      known = undefined;
      keys = await createKeys();
    } else if (response.status === 202) {
      report({ kind: "compare", code: answer.code ?? "" });
      await pause();
    } else if (response.status === 200 && answer.accessToken !== undefined && answer.device) {
      const device = { keys, accessToken: answer.accessToken, id: answer.device.id, name: answer.device.name };
      await storeDevice(device);
      useDevice(device);
      report({ kind: "done" });
      return;
    } else if (response.status === 401 && !corrected && correctClock(response.headers.get("date"))) {
      corrected = true;
    } else if (response.status === 403) {
      report({ kind: "refused", message: answer.error?.message ?? "The terminal said no." });
      return;
    } else if (response.status === 410) {
      report({ kind: "expired" });
      return;
    } else {
      report({ kind: "failed", message: answer.error?.message ?? `The hub answered ${response.status}.` });
      return;
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
}
