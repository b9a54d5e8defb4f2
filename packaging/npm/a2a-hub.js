#!/usr/bin/env node
// Starts the program of this system's package.
"use strict";

const { spawn } = require("node:child_process");
const { program } = require("../program.js");

let path;
try {
  path = program();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(2);
}

const args = process.argv.slice(2);
// Newer Node.js gives the process to the program. Older Node.js waits for it.
if (typeof process.execve === "function") process.execve(path, [path, ...args], process.env);

const child = spawn(path, args, { stdio: "inherit" });
// A terminal sends these signals to both processes.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${path} does not start: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
