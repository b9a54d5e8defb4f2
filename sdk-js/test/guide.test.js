import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ScriptedHost } from "../src/testing.js";

const contract = process.env.A2A_HUB_WIT ?? new URL("../../wit", import.meta.url).pathname;
const root = join(contract, "..");

/** The blocks of JavaScript of a page of the book. */
async function blocks(page) {
  const text = await readFile(join(root, "docs", page), "utf8");
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, source]) => source);
}

/** What a block exports, or does. */
function load(source) {
  const here = (file) => JSON.stringify(new URL(file, import.meta.url).href);
  const text = source.replace('"a2a-hub-sdk"', here("../src/index.js")).replace('"a2a-hub-sdk/testing"', here("../src/testing.js"));
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

test("first agent of the reference does what it says", async () => {
  const [source] = await blocks("reference/sdk-javascript.md");
  const { default: agent } = await load(source);
  const host = new ScriptedHost()
    .answer("main")
    .program("git", { stdout: "a1 one\nb2 two\n" })
    .respond({ json: ["news"] })
    .agent("codex", "fine")
    .agent("gemini", "good");
  assert.equal((await host.run(agent)).text, "1 times: news fine,good");
  assert.equal(host.artifact("log"), "a1 one\nb2 two\n");
  assert.deepEqual(host.spawned[0].args, ["log", "--oneline", "--", "main"]);
});

test("other agents of the reference load", async () => {
  const [, ...others] = await blocks("reference/sdk-javascript.md");
  assert.ok(others.length >= 1);
  for (const source of others) await load(source);
});

test("tutorial shows the agent of a new project", async () => {
  const [shown] = await blocks("guide/first-agent-javascript.md");
  let template = await readFile(join(root, "templates/js/agent.js"), "utf8");
  for (const [placeholder, name] of Object.entries({ "{{name}}": "notes", "{{title}}": "Notes", "{{crate}}": "notes" })) {
    template = template.replaceAll(placeholder, name);
  }
  assert.equal(shown, template);
});

// Those that are tests join the tests of this file.
const [example] = await blocks("how-to/test-your-agent.md");
await load(example);

const [notes, its] = await blocks("guide/two-agents.md");
const sdk = JSON.stringify(new URL("../src/index.js", import.meta.url).href);
const agent = `data:text/javascript,${encodeURIComponent(notes.replace('"a2a-hub-sdk"', sdk))}`;
await load(its.replace('"./agent.js"', JSON.stringify(agent)));
