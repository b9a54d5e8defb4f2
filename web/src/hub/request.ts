// Authenticated POST requests to the hub.

import { correctClock, createProof } from "./dpop.ts";
import { currentDevice, endSession } from "./session.ts";
import type { JsonObject } from "./types.ts";

export type FailureKind = "network" | "unpaired" | "http" | "rpc" | "aborted";

/** Failure of a call; `data` is that of the JSON-RPC error. */
export class HubError extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly data: JsonObject = {},
    readonly code = 0,
  ) {
    super(message);
  }

  /** True if the same call may succeed soon. */
  get isTemporary(): boolean {
    return this.kind === "network" || this.data.reason === "starting" || this.data.reason === "stopping";
  }
}

/** Sends a body with a proof. After a 401, corrects the clock by the response, and tries again. */
export async function post(path: string, body: string, abort?: AbortSignal): Promise<Response> {
  const first = await attempt(path, body, abort);
  if (first.status !== 401) return first;
  correctClock(first.headers.get("date"));
  const second = await attempt(path, body, abort);
  if (second.status !== 401) return second;
  const challenge = second.headers.get("www-authenticate") ?? "";
  if (/\bDPoP\b/i.test(challenge) && /error="?invalid_token"?/i.test(challenge)) {
    await endSession();
    throw new HubError("unpaired", "This browser is not paired with the hub any more.");
  }
  throw new HubError("http", `The hub refused the request: ${(await second.text()).slice(0, 300) || "401"}`);
}

async function attempt(path: string, body: string, abort?: AbortSignal): Promise<Response> {
  const device = currentDevice();
  if (!device) throw new HubError("unpaired", "This browser is not paired with the hub.");
  const headers = {
    "content-type": "application/json",
    authorization: `DPoP ${device.accessToken}`,
    dpop: await createProof(device.keys, path, device.accessToken),
  };
  try {
    return await fetch(path, {
      method: "POST",
      headers,
      body,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      ...(abort ? { signal: abort } : {}),
    });
  } catch (error) {
    if (abort?.aborted) throw new HubError("aborted", "aborted");
    throw new HubError("network", "The hub cannot be reached.", {
      cause: error instanceof Error ? error.message : String(error),
    });
  }
}
