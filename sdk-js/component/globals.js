/**
 * What JavaScript expects around it and QuickJS has not. Promises are replaced: the engine's own run only when nobody has
 * called, and the hub's calls wait for their answer, so the loop has a queue of its own that it can empty.
 */

import "./timers.js";
import "./text.js";
import PromisePolyfill from "promise-polyfill";
import { loop } from "./loop.js";

PromisePolyfill._immediateFn = (job) => loop.enqueue(job);
PromisePolyfill._unhandledRejectionFn = () => {};
PromisePolyfill.withResolvers = () => {
  const made = {};
  made.promise = new PromisePolyfill((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};
PromisePolyfill.try = (work, ...args) => new PromisePolyfill((resolve) => resolve(work(...args)));
globalThis.Promise = PromisePolyfill;
delete globalThis.global;
// It makes promises that no queue of ours has.
delete Array.fromAsync;

const say = (level) => (...words) => loop.log(level, words);
globalThis.console = {
  log: say("info"),
  info: say("info"),
  debug: say("debug"),
  trace: say("debug"),
  warn: say("warn"),
  error: say("error"),
};
