/** What an agent has in mind in the conversation of its task: goal, thoughts, decisions, variables, and items that are recalled. */

import { asking } from "./failure.js";

/** Granted with `memory`. Another agent that called this one may have handed some of it over: then these are that agent's words. */
export class Memory {
  #host;
  #private;

  constructor(host, isPrivate = false) {
    this.#host = host;
    this.#private = isPrivate;
  }

  get #its() {
    return this.#host.contextMemory;
  }

  /** The same, but what it sets is private, and never handed over to another agent. */
  get private() {
    return new Memory(this.#host, true);
  }

  /** All but the items: `goal`, `thoughts`, `decisions`, `variables` and `privateVariables`, those that there are. */
  async working() {
    return JSON.parse(asking(() => this.#its.working()));
  }

  /** What the agent is after, if it has said so. */
  async goal() {
    return (await this.working()).goal;
  }

  async setGoal(goal) {
    asking(() => this.#its.setGoal(goal ?? undefined));
  }

  /** Adds a thought. The newest 256 are kept. */
  async addThought(content) {
    asking(() => this.#its.addThought(content, this.#private));
  }

  /** The thoughts, oldest first, each with its `content`. */
  async thoughts() {
    return (await this.working()).thoughts ?? [];
  }

  /** Decides something, in place of what was decided under that key. */
  async decide(key, value, reason) {
    asking(() => this.#its.decide(key, JSON.stringify(value ?? null), reason ?? undefined, this.#private));
  }

  /** The decisions, oldest first, each with its `key`, `value` and `reason`. */
  async decisions() {
    return (await this.working()).decisions ?? [];
  }

  /** The variables, as they are now. */
  async vars() {
    return (await this.working()).variables ?? {};
  }

  /** Sets a variable; `undefined` drops it. */
  async setVar(name, value) {
    asking(() => this.#its.setVariable(name, value === undefined ? undefined : JSON.stringify(value), this.#private));
  }

  /** Remembers an item, in place of the one with its id: a fact (`semantic`), an event (`episodic`), or another type. */
  async remember(id, data, type = "semantic", { metadata } = {}) {
    const said = this.#private ? { ...metadata, private: true } : metadata;
    const item = { id, type, data: data ?? null, ...(said === undefined ? {} : { metadata: said }) };
    asking(() => this.#its.remember(JSON.stringify(item)));
  }

  /** The items that a text recalls, best first; the newest for a text without words. Each has `id`, `type` and `data`. */
  async recall(query = "", limit = 10) {
    return JSON.parse(asking(() => this.#its.recall(query, limit)));
  }

  /** Forgets the item with this id. */
  async forget(id) {
    asking(() => this.#its.forget(id));
  }
}
