/**
 * Context memory: goal, thoughts, decisions, variables and searchable items of one conversation.
 */

import { asking } from "./failure.js";

/**
 * Memory granted with `memory`. A calling agent may have handed over some of it: such entries are
 * that agent's words.
 */
export class Memory {
  #host;
  #private;

  constructor(host, isPrivate = false) {
    this.#host = host;
    this.#private = isPrivate;
  }

  get #contextMemory() {
    return this.#host.contextMemory;
  }

  /**
   * Same memory, except that everything set through it is private: never handed over to another
   * agent.
   */
  get private() {
    return new Memory(this.#host, true);
  }

  /**
   * Working memory without items: `goal`, `thoughts`, `decisions`, `variables` and
   * `privateVariables`, if set.
   */
  async working() {
    return JSON.parse(asking(() => this.#contextMemory.working()));
  }

  /** Goal of the agent, if it set one. */
  async goal() {
    return (await this.working()).goal;
  }

  async setGoal(goal) {
    asking(() => this.#contextMemory.setGoal(goal ?? undefined));
  }

  /** Adds a thought. Only the newest 256 are stored. */
  async addThought(content) {
    asking(() => this.#contextMemory.addThought(content, this.#private));
  }

  /** Thoughts, oldest first, each with `content`. */
  async thoughts() {
    return (await this.working()).thoughts ?? [];
  }

  /** Records a decision, replacing the one with the same key. */
  async decide(key, value, reason) {
    asking(() => this.#contextMemory.decide(key, JSON.stringify(value ?? null), reason ?? undefined, this.#private));
  }

  /** Decisions, oldest first, each with `key`, `value` and `reason`. */
  async decisions() {
    return (await this.working()).decisions ?? [];
  }

  /** Current variables. */
  async vars() {
    return (await this.working()).variables ?? {};
  }

  /** Sets a variable; `undefined` deletes it. */
  async setVar(name, value) {
    asking(() => this.#contextMemory.setVariable(name, value === undefined ? undefined : JSON.stringify(value), this.#private));
  }

  /**
   * Stores an item, replacing the one with the same id: a fact (`semantic`), an event (`episodic`),
   * or another type.
   */
  async remember(id, data, type = "semantic", { metadata } = {}) {
    const itemMetadata = this.#private ? { ...metadata, private: true } : metadata;
    const item = { id, type, data: data ?? null, ...(itemMetadata === undefined ? {} : { metadata: itemMetadata }) };
    asking(() => this.#contextMemory.remember(JSON.stringify(item)));
  }

  /**
   * Items that match the query, best first; the newest for a query without words. Each has `id`,
   * `type` and `data`.
   */
  async recall(query = "", limit = 10) {
    return JSON.parse(asking(() => this.#contextMemory.recall(query, limit)));
  }

  /** Deletes the item with this id. */
  async forget(id) {
    asking(() => this.#contextMemory.forget(id));
  }
}
