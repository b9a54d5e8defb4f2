/** `structuredClone` for agents that name it; others do not carry it. */
export { default as structuredClone } from "core-js-pure/actual/structured-clone.js";
