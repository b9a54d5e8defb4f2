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
  const deferred = {};
  deferred.promise = new PromisePolyfill((resolve, reject) => Object.assign(deferred, { resolve, reject }));
  return deferred;
};
PromisePolyfill.try = (work, ...args) => new PromisePolyfill((resolve) => resolve(work(...args)));
globalThis.Promise = PromisePolyfill;
delete globalThis.global;
// It creates native promises, which are not in the loop's queue.
delete Array.fromAsync;

const logAt = (level) => (...args) => loop.log(level, args);
globalThis.console = {
  log: logAt("info"),
  info: logAt("info"),
  debug: logAt("debug"),
  trace: logAt("debug"),
  warn: logAt("warn"),
  error: logAt("error"),
};
