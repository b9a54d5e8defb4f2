// Client of the hub's unix socket for the browser stories: the operator who makes tasks, answers
// questions, and confirms pairings.

import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Time for which a condition is awaited, in milliseconds. */
const PATIENCE_MS = 10_000;

const FINAL = new Set(['completed', 'failed', 'canceled', 'rejected']);

/** Error of the hub, with its reason and its code. */
export class HubError extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.reason = error.data?.reason;
  }
}

/** Repeats `read` until it returns a value that counts as true. */
export async function until(what, read, within = PATIENCE_MS) {
  const end = Date.now() + within;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${within} ms: ${what}`);
    await sleep(40);
  }
}

/** Fails unless the condition holds. */
export function check(condition, what) {
  if (!condition) throw new Error(`not so: ${typeof what === 'string' ? what : JSON.stringify(what)}`);
}

/** A connection to the hub, and the tasks and devices that the stories made over it. */
export class Hub {
  #calls = new Map();
  #next = 1;
  #rest = '';
  #tasks = new Set();
  #devices = new Set();

  static async open(path, base) {
    const hub = new Hub();
    hub.base = base;
    hub.socket = connect(path);
    await new Promise((resolve, reject) => hub.socket.once('connect', resolve).once('error', reject));
    hub.socket.setEncoding('utf8').on('data', (text) => hub.#receive(text));
    hub.socket.on('close', () => hub.#fail(new Error('the hub closed the socket')));
    hub.socket.on('error', (error) => hub.#fail(error));
    return hub;
  }

  #receive(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) {
      const answer = JSON.parse(line);
      if (answer.id === null) {
        this.#refuse(new HubError(answer.error));
        continue;
      }
      const call = this.#calls.get(answer.id);
      this.#calls.delete(answer.id);
      if (answer.error) call?.reject(new HubError(answer.error));
      else call?.resolve(answer.result);
    }
  }

  /** Rejects the calls that the hub cannot read, and whose ids it therefore does not know. */
  #refuse(error) {
    for (const [id, call] of this.#calls) {
      if (!call.hasLoneSurrogate) continue;
      this.#calls.delete(id);
      call.reject(error);
    }
  }

  #fail(error) {
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
  }

  /** Calls a method of the hub's dialect. */
  call(method, params = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const line = JSON.stringify({ jsonrpc: '2.0', id, method, params });
      // JSON.stringify writes escapes for these only.
      this.#calls.set(id, { resolve, reject, hasLoneSurrogate: /\\ud[89a-f]/.test(line) });
      this.socket.write(`${line}\n`);
    });
  }

  /** Sends a message, and returns the task when it has ended or asks something. */
  async send(agent, content, { blocking = true, contextId } = {}) {
    const parts = typeof content === 'string' ? [{ kind: 'text', text: content }] : content;
    const metadata = { targetAgent: agent };
    const message = { kind: 'message', messageId: randomUUID(), role: 'user', parts, metadata, contextId };
    const task = await this.call('message/send', { message, configuration: { blocking } });
    if (task.kind === 'task' && !FINAL.has(task.status.state)) this.#tasks.add(task.id);
    return task;
  }

  /** Sends a message to an agent that asks, and returns the id of its question and its task. */
  async ask(agent, text) {
    const task = await this.send(agent, text);
    const question = task.metadata?.question?.id;
    check(question, { agent, text: text.slice(0, 80), status: task.status });
    return { question, task: task.id };
  }

  task(id) {
    return this.call('tasks/get', { id });
  }

  /** Waits for a state of a task. */
  reach(id, state) {
    return until(`task ${id} is ${state}`, async () => {
      const task = await this.task(id);
      return task.status.state === state && task;
    });
  }

  /** Returns the earlier questions with these ids. */
  async earlier(ids) {
    const { questions } = await this.call('hub/questions/history', { limit: 1000 });
    return questions.filter((it) => ids.includes(it.id));
  }

  /** Number of streams that are open, by the hub's metrics. */
  async streams() {
    const text = await (await fetch(`${this.base}/metrics`)).text();
    const [, value] = /^a2a_hub_streams (\d+)$/m.exec(text) ?? [];
    check(value, 'the metrics name the number of streams');
    return Number(value);
  }

  offer() {
    return this.call('hub/devices/pair');
  }

  /** Waits until a browser presents the token, and returns the pairing with its code. */
  presented(token) {
    return until('a browser presents the token', async () => {
      const pairing = await this.call('hub/devices/pairing', { token });
      return pairing.state === 'presented' && pairing;
    });
  }

  async devices() {
    return (await this.call('hub/devices/list')).devices;
  }

  /** Says yes or no to a pairing; returns the new device. */
  async confirm(token, code, accept) {
    const before = new Set((await this.devices()).map((it) => it.id));
    await this.call('hub/devices/confirm', { token, code, accept });
    if (!accept) return undefined;
    const device = await until('the device is listed', async () =>
      (await this.devices()).find((it) => !before.has(it.id)),
    );
    this.#devices.add(device.id);
    return device;
  }

  removeDevice(id) {
    this.#devices.delete(id);
    return this.call('hub/devices/remove', { id });
  }

  /** Cancels what a story left open, so that the next one begins with an empty inbox. */
  async tidy() {
    const tasks = [...this.#tasks];
    this.#tasks.clear();
    await Promise.allSettled(tasks.map((id) => this.call('tasks/cancel', { id })));
  }

  async close() {
    await this.tidy();
    await Promise.allSettled([...this.#devices].map((id) => this.removeDevice(id)));
    this.socket.destroy();
  }
}

/** All texts of a message. */
export function textOf(message) {
  return (message?.parts ?? []).map((part) => part.text ?? '').join('');
}
