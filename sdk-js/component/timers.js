/** Timers of the SDK's loop. Imported first, since other modules read them while they load. */

import { loop } from "./loop.js";

// Libraries look for globals here; `globals.js` deletes it again.
globalThis.global = globalThis;

globalThis.queueMicrotask = (job) => loop.enqueue(job);
globalThis.setTimeout = (job, delay = 0, ...args) => loop.startTimer(() => job(...args), Number(delay) || 0);
globalThis.setInterval = (job, interval = 0, ...args) => {
  const id = loop.startTimer(function tick() {
    loop.startTimer(tick, Number(interval) || 0, id);
    job(...args);
  }, Number(interval) || 0);
  return id;
};
globalThis.clearTimeout = globalThis.clearInterval = (id) => loop.stopTimer(id);
