import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedHost } from "a2a-hub-sdk/testing";
import agent from "./agent.js";

test("it keeps and lists", async () => {
  const host = new ScriptedHost();
  assert.equal((await host.run(agent, "note buy milk")).text, "kept; that makes 1");
  await host.run(agent, "note call mum");
  assert.equal((await host.run(agent, "list")).text, "2 notes");
  assert.equal(host.artifact("notes"), "1. buy milk\n2. call mum\n");
});

test("it asks before it forgets", async () => {
  const host = new ScriptedHost();
  await host.run(agent, "note buy milk");
  assert.equal((await host.answer("no").run(agent, "forget")).text, "kept them all");
  assert.equal((await host.answer("yes").run(agent, "forget")).text, "forgotten");
  assert.equal(host.asked[0].text, "Forget 1 notes?");
  assert.equal(host.memory.size, 0);
});

test("it rejects what it does not know", async () => {
  assert.equal((await new ScriptedHost().run(agent, "dance")).state, "rejected");
});
