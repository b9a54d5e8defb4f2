/** Write an agent for a2a-hub: `export default defineAgent({ card, run })`. */

export { cardJson, defineAgent } from "./agent.js";
export { Context } from "./context.js";
export { Cancelled, Failure } from "./failure.js";
export { Message, Outcome, Task } from "./message.js";
