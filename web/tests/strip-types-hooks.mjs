// Module hooks that compile TypeScript files when they are loaded.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";

export async function load(url, context, next) {
  if (!/\.tsx?$/.test(url)) return next(url, context);
  const path = fileURLToPath(url);
  const source = await readFile(path, "utf8");
  const { code } = await transformWithOxc(source, path, { jsx: { runtime: "automatic", importSource: "preact" } });
  return { format: "module", shortCircuit: true, source: code };
}
