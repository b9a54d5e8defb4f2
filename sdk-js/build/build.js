/**
 * Builds the component of an agent: one bundle whose promises run in the SDK's event loop, in
 * QuickJS.
 */

import { componentize } from "componentize-qjs";
import * as esbuild from "esbuild";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const SDK = dirname(dirname(fileURLToPath(import.meta.url)));
const SECTION = "a2a-hub:manifest";
const INTERFACES = ["context-memory", "delegate", "files", "http", "log", "memory", "process", "settings", "steps", "tasks", "tools", "wait"];

/**
 * Web APIs that QuickJS lacks. Only agents that use them include them, since they are larger than
 * most agents.
 */
const WEB = [
  { file: "web/url.js", names: /\bURL(SearchParams)?\b/ },
  { file: "web/structured_clone.js", names: /\bstructuredClone\b/ },
];

/** Error with a text that lets the user fix it. */
export class BuildError extends Error {}

/** Builds the component of the project in `root` to `out`, and returns its size in bytes. */
export async function build({ root, entry, out, manifest = "manifest.toml", wit }) {
  const agent = resolve(root, entry);
  if (!existsSync(agent)) throw new BuildError(`there is no ${entry} in ${root}; \`a2a-hub.main\` of package.json says where the agent is`);
  const contract = resolve(root, wit ?? (existsSync(join(root, "vendor/wit")) ? "vendor/wit" : join(SDK, "../wit")));
  if (!existsSync(join(contract, "world.wit"))) throw new BuildError(`there is no contract in ${contract}; \`a2a-hub plugin new\` puts it into vendor/wit`);
  const js = await bundle(root, agent);
  const componentized = await withWorld(contract, (witPath) => componentize({ witPath, world: "javascript", jsSource: js, sync: true, optSize: false }));
  let component = Buffer.from(componentized.component);
  const manifestFile = resolve(root, manifest);
  if (existsSync(manifestFile)) component = Buffer.concat([component, customSection(SECTION, await readFile(manifestFile))]);
  const file = resolve(root, out);
  await mkdir(dirname(file), { recursive: true });
  // A hub may watch the file, so it must never be incomplete.
  await writeFile(`${file}.new`, component);
  await rename(`${file}.new`, file);
  return (await stat(file)).size;
}

/** Calls `work` with a folder of the contract and the functions of WASI that the SDK uses. */
async function withWorld(contract, work) {
  const folder = await mkdtemp(join(tmpdir(), "a2a-hub-wit-"));
  try {
    await cp(contract, folder, { recursive: true });
    await mkdir(join(folder, "deps"), { recursive: true });
    await cp(join(SDK, "wit/filesystem.wit"), join(folder, "deps/filesystem.wit"));
    await cp(join(SDK, "wit/world.wit"), join(folder, "javascript.wit"));
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function bundle(root, agent) {
  const camelCase = (name) => name.replace(/-(.)/g, (_, first) => first.toUpperCase());
  const path = (file) => JSON.stringify(join(SDK, file));
  const imports = INTERFACES.map((name) => `import * as ${camelCase(name)}_ from "a2a:hub/${name}@0.1.0";`).join("\n");
  const hosts = INTERFACES.map((name) => `${camelCase(name)}: ${camelCase(name)}_`).concat("preopens").join(", ");
  const contents = `import ${path("component/globals.js")};
${imports}
import * as preopens from "wasi:filesystem/preopens@0.2.3";
import { serve } from ${path("component/serve.js")};
import { setLines } from ${path("src/place.js")};
import * as agentModule from ${JSON.stringify(agent)};
setLines(globalThis.__a2aHubLines);
export const agent = serve(agentModule.default, { ${hosts} });`;
  const bundled = (inject) => esbuild.build({
    stdin: { contents, resolveDir: root, sourcefile: "agent_entry.js" },
    absWorkingDir: root,
    inject,
    alias: { "a2a-hub-sdk": join(SDK, "src/index.js") },
    nodePaths: [join(root, "node_modules")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["import", "worker"],
    external: ["a2a:*", "wasi:*"],
    target: "es2023",
    // Lowered code creates promises by the global name, which is the SDK's implementation.
    supported: { "async-await": false, "async-generator": false, "for-await": false, "top-level-await": false },
    charset: "utf8",
    keepNames: false,
    metafile: true,
    sourcemap: "external",
    outfile: join(root, "dist/bundle.js"),
    logLevel: "silent",
  });
  let result;
  try {
    result = await bundled([]);
    const sources = Object.keys(result.metafile.inputs).filter((file) => !/(^|\/)(fast-text-encoding|promise-polyfill)\//.test(file) && !resolve(root, file).startsWith(`${SDK}/`) && file !== "agent_entry.js");
    const texts = await Promise.all(sources.map((file) => readFile(resolve(root, file), "utf8").catch(() => "")));
    const needed = WEB.filter(({ names }) => texts.some((text) => names.test(text)));
    if (needed.length) result = await bundled(needed.map(({ file }) => join(SDK, file)));
  } catch (error) {
    const messages = await esbuild.formatMessages(error.errors ?? [], { kind: "error" });
    if (!messages.length) throw error;
    throw new BuildError(`the agent cannot be bundled:\n${messages.join("\n")}`);
  }
  const [map, code] = ["bundle.js.map", "bundle.js"].map((name) => result.outputFiles.find(({ path }) => path.endsWith(name)).text);
  return withLines(code, JSON.parse(map), root);
}

/** Bundle with its line table, put on the first line so that no line number changes. */
function withLines(code, map, root) {
  const sourceMap = new SourceMap(map);
  const [files, of] = [[], []];
  const count = code.split("\n").length;
  for (let line = 0; line < count; line++) {
    // A line may begin with generated code; its end maps to the source.
    const entry = sourceMap.findEntry(line, 1 << 20);
    const isFromAgent = entry.generatedLine === line && isAgentSource(entry.originalSource, root);
    let file = -1;
    if (isFromAgent) {
      const name = relative(root, resolve(root, "dist", entry.originalSource));
      file = files.indexOf(name);
      if (file < 0) file = files.push(name) - 1;
    }
    of.push(file, isFromAgent ? entry.originalLine + 1 : 0);
  }
  return `globalThis.__a2aHubLines = ${JSON.stringify({ files, of })};${code}`;
}

function isAgentSource(source, root) {
  if (!source) return false;
  const file = resolve(root, "dist", source);
  return !file.includes("/node_modules/") && !file.startsWith(`${SDK}/`) && !file.endsWith("agent_entry.js");
}

/** Encodes a custom section of WebAssembly. */
export function customSection(name, bytes) {
  const payload = Buffer.concat([Buffer.from([name.length]), Buffer.from(name), bytes]);
  const length = [];
  let remaining = payload.length;
  do {
    length.push((remaining & 0x7f) | (remaining > 0x7f ? 0x80 : 0));
    remaining >>>= 7;
  } while (remaining > 0);
  return Buffer.concat([Buffer.from([0]), Buffer.from(length), payload]);
}
