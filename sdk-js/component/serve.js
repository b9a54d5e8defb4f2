/** An agent as the contract's export. */

import { cardJson, checkHealth, cleanUp, defineAgent, runTask } from "../src/agent.js";
import { Failure } from "../src/failure.js";
import { loop } from "./loop.js";

export function serve(definition, imports) {
  if (!definition) throw new TypeError("the agent's file exports nothing by default; write `export default defineAgent({ … })`");
  defineAgent(definition);
  const host = {
    ...imports,
    ready: (origin) => loop.ready(origin),
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
    execute: (task) => running(() => runTask(definition, host, task, false)),
    stream: (task) => running(() => runTask(definition, host, task, true)),
    cancel: (taskId) => running(() => cleanUp(definition, host, taskId)),
  };
}
