/** Export of an agent to the contract. */

import { cardJson, checkHealth, cleanUp, defineAgent, runTask } from "../src/agent.js";
import { Failure } from "../src/failure.js";
import { loop } from "./loop.js";
import { workspaceOf } from "./workspace.js";

export function serve(definition, imports) {
  if (!definition) throw new TypeError("the agent's file exports nothing by default; write `export default defineAgent({ … })`");
  defineAgent(definition);
  const host = {
    ...imports,
    workspace: workspaceOf(imports.preopens),
    ready: (origin) => loop.ready(origin),
    idle: () => loop.idle(),
    sleep: (milliseconds) => loop.sleep(milliseconds),
    isConcurrent: () => loop.isBusy(),
  };
  const card = cardJson(definition);
  const running = (work) => {
    loop.connect(host);
    try {
      return loop.run(work());
    } catch (thrown) {
      throw (thrown instanceof Failure ? thrown : Failure.internal(String(thrown))).toContract();
    }
  };
  return {
    card: () => card,
    health: () => running(() => checkHealth(definition, host)),
    execute: (task) => running(() => runTask(definition, host, seeded(task), false)),
    stream: (task) => running(() => runTask(definition, host, seeded(task), true)),
    cancel: (taskId) => running(() => cleanUp(definition, host, taskId)),
  };
}

/**
 * Random numbers per task, equal in a replay: the engine's seed comes from the machine that built
 * the component. They must not be used as secrets (sfc32, seeded by FNV-1a of the task's id).
 */
function seeded(task) {
  const seed = (basis) => [...task.id].reduce((sum, letter) => Math.imul(sum ^ letter.charCodeAt(0), 0x01000193), basis) | 0;
  let [a, b, c, d] = [seed(0x811c9dc5), seed(0x9e3779b9), seed(0x85ebca6b), 1];
  Math.random = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  for (let warm = 0; warm < 12; warm++) Math.random();
  return task;
}
