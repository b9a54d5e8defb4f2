import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const tools = await import("../build/build.js").catch(() => undefined);
const skip = tools ? false : "the build tools are not installed (npm install)";

const project = async (files) => {
  const root = await mkdtemp(join(tmpdir(), "a2a-hub-js-"));
  after(() => rm(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  return root;
};

test("TypeScript is built, with its manifest", { skip }, async () => {
  const root = await project({
    "agent.ts": `import { defineAgent, type Context } from "a2a-hub-sdk";
export default defineAgent({ card: { name: "t", description: "t", version: "0.1.0" }, async run(ctx: Context) { return ctx.done("x"); } });`,
    "manifest.toml": 'description = "t"\n',
  });
  const size = await tools.build({ root, entry: "agent.ts", out: "dist/t.wasm", wit: process.env.A2A_HUB_WIT });
  const bytes = await readFile(join(root, "dist/t.wasm"));
  assert.equal(bytes.length, size);
  assert.deepEqual([...bytes.subarray(0, 8)], [0, 97, 115, 109, 13, 0, 1, 0]);
  assert.ok(bytes.subarray(-60).includes("a2a-hub:manifest"));
});

test("what is wrong with an agent is said", { skip }, async () => {
  const wrong = async (text, entry = "agent.js") => {
    const root = await project({ "agent.js": text });
    return tools.build({ root, entry, out: "x.wasm", wit: process.env.A2A_HUB_WIT }).then(() => "built", (failed) => String(failed.message ?? failed));
  };
  assert.match(await wrong("export default {"), /agent\.js:1:16/);
  assert.match(await wrong("export const x = 1;"), /exports nothing by default/);
  assert.match(await wrong("", "other.js"), /there is no other\.js/);
  assert.match(await wrong('import "node:fs";'), /node:fs/);
  assert.match(await wrong('import { defineAgent } from "a2a-hub-sdk"; export default defineAgent({ run() {} });'), /card\.name/);
});
