/**
 * Globals that JavaScript code expects and QuickJS lacks. Promises are replaced: the engine's
 * promises run only without a call on the stack, while the hub's calls block. So the loop has a
 * separate queue that it can drain.
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
// It creates native promises, which are not in the loop's queue.
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
