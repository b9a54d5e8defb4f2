/** Hooks of Node.js's module loader. */

import { transform } from "esbuild";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export async function load(url, context, next) {
  if (!/\.m?ts$/.test(url)) return next(url, context);
  const source = await readFile(fileURLToPath(url), "utf8");
  const { code } = await transform(source, { loader: "ts", format: "esm", target: "es2022", sourcemap: "inline", sourcefile: fileURLToPath(url) });
  return { format: "module", source: code, shortCircuit: true };
}
