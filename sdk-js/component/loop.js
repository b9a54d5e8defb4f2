/**
 * Event loop of a component. The contract's calls are synchronous and suspend the whole instance,
 * so all concurrent waits share one call, `wait.any-of`.
 */

import { formatLogValue } from "../src/context.js";
import { Cancelled, Failure, asking } from "../src/failure.js";

class Loop {
  #jobs = [];
  #timers = new Map();
  #lastTimer = 0;
  #waiting = [];
  #idle = [];
  #host;

  /** Sets the hub's functions. */
  connect(host) {
    this.#host = host;
  }

  enqueue(job) {
    this.#jobs.push(job);
  }

  log(level, values) {
    this.#host?.log.log(level, values.map(formatLogValue).join(" "));
  }

  startTimer(job, delay, id = ++this.#lastTimer, reject = undefined) {
    this.#timers.set(id, { job, at: Date.now() + Math.max(0, delay), reject });
    return id;
  }

  stopTimer(id) {
    this.#timers.delete(id);
  }

  /** True if a blocking call would delay other work. */
  isBusy() {
    return this.#jobs.length + this.#waiting.length + this.#timers.size + this.#idle.length > 0;
  }

  /** Resolves once all other work is blocked: for use before a call that blocks the instance. */
  idle() {
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Resolves once a call on this source would not block. */
  ready(origin) {
    return new Promise((resolve, reject) => this.#waiting.push({ origin, resolve, reject }));
  }

  sleep(milliseconds) {
    return new Promise((resolve, reject) => this.startTimer(resolve, milliseconds, undefined, reject));
  }

  /** Runs until the promise is settled, and returns or throws its result. */
  run(promise) {
    let end;
    promise.then(
      (value) => (end = { value }),
      (thrown) => (end = { thrown }),
    );
    for (;;) {
      for (let job; (job = this.#jobs.shift()); ) job();
      if (end) break;
      this.#wait();
    }
    if ("thrown" in end) throw end.thrown;
    return end.value;
  }

  #wait() {
    const first = this.#idle.shift();
    if (first) {
      first();
      return;
    }
    const timers = [...this.#timers].sort(([, a], [, b]) => a.at - b.at);
    const [next] = timers;
    if (!next && this.#waiting.length === 0) {
      throw Failure.internal("the agent waits for a promise that nothing will settle; is an `await` missing, or a `resolve`?");
    }
    if (!next && this.#waiting.length === 1) {
      // Its own call blocks as well.
      this.#waiting.pop().resolve();
      return;
    }
    const timeout = next ? Math.max(0, Math.ceil(next[1].at - Date.now())) : null;
    const waiting = this.#waiting;
    let ready = [];
    try {
      ready = asking(() => this.#host.wait.anyOf(waiting.map(({ origin }) => origin), timeout));
    } catch (error) {
      if (!(error instanceof Cancelled)) throw error;
    }
    if (ready.length > 0) {
      this.#waiting = waiting.filter((_, index) => !ready.includes(index));
      for (const index of ready) waiting[index].resolve();
      return;
    }
    if (this.#host.tasks.cancelled()) {
      this.#cancel();
      return;
    }
    if (!next) return;
    // In order, not by the clock: the clock of a replayed agent stands still.
    this.#timers.delete(next[0]);
    next[1].job();
  }

  /** Rejects all waits with `Cancelled`, so that the agent's `finally` blocks run. */
  #cancel() {
    const rejects = [...this.#waiting, ...this.#timers.values()].flatMap(({ reject }) => reject ?? []);
    this.#timers.clear();
    this.#waiting = [];
    if (rejects.length === 0) throw new Cancelled();
    for (const reject of rejects) reject(new Cancelled());
  }
}

export const loop = new Loop();
