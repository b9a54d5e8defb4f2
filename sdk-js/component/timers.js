/** Timers of the SDK's loop. Imported first, since other modules read them while they load. */

import { loop } from "./loop.js";

// Libraries look for globals here; `globals.js` deletes it again.
globalThis.global = globalThis;

globalThis.queueMicrotask = (job) => loop.enqueue(job);
globalThis.setTimeout = (job, after = 0, ...args) => loop.startTimer(() => job(...args), Number(after) || 0);
globalThis.setInterval = (job, every = 0, ...args) => {
  const id = loop.startTimer(function again() {
    loop.startTimer(again, Number(every) || 0, id);
    job(...args);
  }, Number(every) || 0);
  return id;
};
globalThis.clearTimeout = globalThis.clearInterval = (id) => loop.stopTimer(id);
