import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ScriptedHost } from "../src/testing.js";

const contract = process.env.A2A_HUB_WIT ?? new URL("../../wit", import.meta.url).pathname;

test("the guide's agent does what it says", async () => {
  const guide = await readFile(join(contract, "../docs/GUESTS.md"), "utf8");
  const [, source] = /```js\n(.*?)```/s.exec(guide);
  const sdk = new URL("../src/index.js", import.meta.url).href;
  const text = source.replace('"a2a-hub"', JSON.stringify(sdk));
  const { default: agent } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
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
