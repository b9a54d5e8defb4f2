/** `structuredClone`, included only in agents that use it. */
export { default as structuredClone } from "core-js-pure/actual/structured-clone.js";
