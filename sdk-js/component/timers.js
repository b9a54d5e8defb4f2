/** Timers of the SDK's loop; first of all, for other modules look for them when they are loaded. */

import { loop } from "./loop.js";

// Where libraries look for what they would add to; `globals.js` takes it away again.
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
