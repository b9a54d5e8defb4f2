#!/usr/bin/env node
/**
 * `a2a-hub-build`: builds the agent of the current folder. `package.json` has the agent's file and
 * the component's path.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";

const root = process.cwd();
try {
  const started = Date.now();
  const text = await readFile(join(root, "package.json"), "utf8").catch(() => {
    throw new Error(`there is no package.json in ${root}; run this in the project's folder`);
  });
  const { name, "a2a-hub": settings = {} } = JSON.parse(text);
  const { build } = await import("./build.js").catch((error) => {
    if (error?.code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error(`the build tools are not there (${error.message.split("\n")[0]}); run \`npm install\``);
  });
  const out = settings.component ?? `dist/${name}.wasm`;
  const bytes = await build({ root, entry: settings.main ?? "agent.js", out, manifest: settings.manifest, wit: settings.wit });
  console.log(`${out}: ${(bytes / 1e6).toFixed(1)} MB, in ${((Date.now() - started) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error(`error: ${error?.message ?? error}`);
  process.exitCode = 1;
}
