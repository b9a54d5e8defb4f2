// State of this tab's access to the hub: paired or not, reachable or not.

import { signal } from "@preact/signals";
import { type Device, forgetDevice, loadDevice } from "./device.ts";

/** `loading` until IndexedDB answers; `insecure` if the browser gives the page no cryptography. */
export const pairing = signal<"loading" | "paired" | "unpaired" | "removed" | "insecure">("loading");

/** The hub as this tab sees it. */
export const connection = signal<"connecting" | "online" | "starting" | "offline">("connecting");

/** Time of the next attempt to reach the hub, in milliseconds. */
export const retryAt = signal(0);

/** Grows each time the hub is reachable again: views then read everything anew. */
export const epoch = signal(0);

let device: Device | undefined;

/** The device with whose key requests are signed. */
export function currentDevice(): Device | undefined {
  return device;
}

/** Loads the device. */
export async function startSession(): Promise<void> {
  if (!window.isSecureContext || !globalThis.crypto?.subtle || !globalThis.indexedDB) {
    pairing.value = "insecure";
    return;
  }
  try {
    device = await loadDevice();
  } catch {
    device = undefined;
  }
  pairing.value = device ? "paired" : "unpaired";
}

/** Takes a new device into use. */
export function useDevice(next: Device): void {
  device = next;
  pairing.value = "paired";
}

/** Ends the session after the hub refused the device. */
export async function endSession(): Promise<void> {
  if (pairing.value === "removed") return;
  // Another tab may have paired again: its device counts, if it is another one.
  const stored = await loadDevice().catch(() => undefined);
  if (stored && device && stored.id !== device.id) {
    useDevice(stored);
    epoch.value += 1;
    return;
  }
  device = undefined;
  pairing.value = "removed";
  await forgetDevice().catch(() => undefined);
}
