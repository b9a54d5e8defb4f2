/** Definition of an agent, and its calls by the contract. */

import { Context, formatLogValue } from "./context.js";
import { Failure, failureOf } from "./failure.js";
import { End, Task } from "./message.js";
import { positionOf, stackOf } from "./place.js";

/** Validates a definition, and returns it. */
export function defineAgent(definition) {
  const { card, run } = definition ?? {};
  if (typeof run !== "function") throw new TypeError("defineAgent: `run` is missing; it is a function `async run(ctx, task)`");
  for (const name of ["name", "description", "version"]) {
    if (typeof card?.[name] !== "string") throw new TypeError(`defineAgent: \`card.${name}\` is missing; it is a text`);
  }
  for (const skill of card.skills ?? []) {
    for (const name of ["id", "name", "description"]) {
      if (typeof skill[name] !== "string") throw new TypeError(`defineAgent: a skill of the card has no \`${name}\``);
    }
  }
  return definition;
}

/** Card in the contract's form. */
export function cardJson({ card }) {
  const { streaming = true, extensions, skills = [], ...rest } = card;
  return JSON.stringify({
    ...rest,
    capabilities: { streaming, ...(extensions ? { extensions } : {}), ...rest.capabilities },
    defaultInputModes: card.defaultInputModes ?? ["text/plain"],
    defaultOutputModes: card.defaultOutputModes ?? ["text/plain"],
    skills: skills.map((skill) => ({ tags: [], ...skill })),
  });
}

/** Runs a task of the contract to its end. Throws only `Failure`. */
export async function runTask(definition, host, task, live) {
  try {
    const ctx = new Context(host, live);
    return End.of(await definition.run(ctx, new Task(task))).contract;
  } catch (thrown) {
    throw toFailure(thrown, host);
  }
}

export async function checkHealth(definition, host) {
  try {
    const health = (await definition.health?.(new Context(host, false))) ?? { status: "healthy" };
    const { status, version = null, detail = null, fix = null } = health;
    return { status, version, detail, fix };
  } catch (thrown) {
    return { status: "unhealthy", version: null, detail: toFailure(thrown, host).message, fix: null };
  }
}

export async function cleanUp(definition, host, taskId) {
  try {
    await definition.cancel?.(new Context(host, false), taskId);
  } catch (thrown) {
    throw toFailure(thrown, host);
  }
}

/** Converts a thrown value to a failure that names its position. */
function toFailure(thrown, host) {
  const failure = failureOf(thrown);
  if (failure instanceof Failure) return failure;
  const name = failure instanceof Error ? `${failure.name}: ${failure.message}` : `it threw ${JSON.stringify(failure) ?? failure}`;
  const position = positionOf(failure);
  host.log.log("error", formatLogValue(`uncaught ${name}\n${stackOf(failure)}`));
  return Failure.internal(position ? `${name} (at ${position})` : name);
}
