import assert from "node:assert/strict";
import { test } from "node:test";
import { Cancelled, Failure, defineAgent } from "../src/index.js";
import { ScriptedHost } from "../src/testing.js";
import { workspaceOf } from "../component/workspace.js";

const card = { name: "t", description: "tests", version: "0.1.0" };
const agent = (run, rest = {}) => defineAgent({ card, run, ...rest });

test("what a run returns is its end", async () => {
  const host = new ScriptedHost();
  assert.equal((await host.run(agent(async (_, task) => task.text), "hello")).text, "hello");
  assert.equal((await host.run(agent(async () => {}))).state, "completed");
  const failed = await host.run(agent(async (ctx) => ctx.fail("no_login", "log in", { fix: "x login" })));
  assert.deepEqual([failed.state, failed.metadata], ["failed", { reason: "no_login", fix: "x login" }]);
  assert.equal((await host.run(agent(async (ctx) => ctx.reject("no")))).state, "rejected");
  assert.equal((await host.run(agent(async (ctx) => ctx.reply("hi")))).state, undefined);
  const parts = await host.run(agent(async () => [{ data: { a: 1 } }, "text"]));
  assert.deepEqual([parts.message.data, parts.text], [{ a: 1 }, "text"]);
});

test("what is thrown says where", async () => {
  const host = new ScriptedHost();
  const boom = agent(async () => {
    throw new TypeError("bad thing");
  });
  const failure = await host.run(boom).catch((thrown) => thrown);
  assert.ok(failure instanceof Failure && failure.kind === "internal");
  assert.match(failure.message, /^TypeError: bad thing \(at agent\.test\.js:\d+\)$/);
  assert.equal(host.logs[0].level, "error");
  const denied = await host.run(agent(async (ctx) => ctx.run("git"))).catch((thrown) => thrown);
  assert.deepEqual([denied.kind, denied.message], ["denied", "run `git`: not in the script of the test"]);
});

test("streams gather small pieces, and end as the whole", async () => {
  const host = new ScriptedHost();
  const words = agent(async (ctx) => {
    const stream = ctx.stream("out", { name: "Out" });
    for (const word of "a b c d".split(" ")) await stream.write(word);
    return stream.finish();
  });
  assert.equal((await host.run(words)).text, "abcd");
  const told = host.events.map(({ artifact, append, lastChunk }) => [artifact.text, append, lastChunk]);
  assert.deepEqual(told, [["a", false, false], ["abcd", false, true]]);
  assert.equal(host.artifact("out"), "abcd");
});

test("halves of a character are sent together", async () => {
  const host = new ScriptedHost();
  const halves = agent(async (ctx) => {
    const stream = ctx.stream("out");
    for (const piece of ["party \ud83c", "\udf89 time \ud83d"]) {
      await stream.write(piece);
      await stream.flush();
    }
    return stream.finish();
  });
  await host.run(halves);
  const told = host.events.map(({ artifact }) => artifact.text.toWellFormed());
  assert.deepEqual(told, ["party ", "\u{1f389} time ", "party \u{1f389} time \ufffd"]);
});

test("programs, line by line", async () => {
  const host = new ScriptedHost().program("git", { stdout: "\ufeffone\r\ntwo\nthr\u00e4\r", stderr: "hm\n", code: 3 });
  const lines = [];
  const run = agent(async (ctx) => {
    const exit = await ctx.run("git", ["log", 5], { env: { LC_ALL: "C" }, input: "x", onLine: (line) => lines.push(line) });
    return JSON.stringify(exit);
  });
  const { text } = await host.run(run);
  assert.deepEqual(JSON.parse(text), { code: 3, ok: false, stderr: "hm", stdout: "" });
  assert.deepEqual(lines, ["one", "two", "thr\u00e4"]);
  assert.deepEqual(host.spawned[0], { program: "git", args: ["log", "5"], env: { LC_ALL: "C" }, cwd: null, stdin: "x" });
});

test("answers over HTTP, as the web has them", async () => {
  const host = new ScriptedHost()
    .respond({ json: { a: [1] }, headers: { "Content-Type": "application/json" } })
    .respond({ pieces: ["event: del", "ta\nid: 7\ndata: x\n\ndata: y\nda", "ta: z\n\ndata: cut"] });
  const run = agent(async (ctx) => {
    const answer = await ctx.fetch("https://example.com/a", { method: "POST", body: "b", headers: { "X-A": "1" } });
    const { a } = await answer.json();
    const events = [];
    for await (const event of (await ctx.fetch("https://example.com/b")).events()) events.push(event);
    return JSON.stringify([answer.headers.get("content-type"), answer.ok, a, events]);
  });
  assert.deepEqual(JSON.parse((await host.run(run)).text), [
    "application/json",
    true,
    [1],
    [{ event: "delta", data: "x", id: "7" }, { event: "message", data: "y\nz" }],
  ]);
  assert.deepEqual(host.requests[0].headers, { "X-A": "1" });
});

test("questions, memory, settings, others, tools", async () => {
  const host = new ScriptedHost()
    .answer("main")
    .setting("model", "m")
    .agent("codex", { text: "fine", artifacts: { notes: "some" } })
    .agent("bad", { state: "failed", text: "no" })
    .tool("files", "read", { content: [{ type: "text", text: "hello" }] });
  const run = agent(async (ctx) => {
    await ctx.remember("k", { branch: (await ctx.ask("which?")).text });
    const [review, bad] = await Promise.all([ctx.call("codex", "review"), ctx.call("bad", "x").catch((failed) => failed)]);
    const tool = await ctx.callTool("files", "read", { path: "a" });
    const kept = await ctx.recall("k");
    return JSON.stringify([kept, review.text, review.artifacts, bad.message, tool.text, ctx.setting("model"), await ctx.remembered(), await ctx.recall("x")]);
  });
  assert.deepEqual(JSON.parse((await host.run(run)).text), [
    { branch: "main" },
    "fine",
    { notes: "some" },
    "`bad` ended as failed: no",
    "hello",
    "m",
    ["k"],
    null,
  ]);
  assert.equal(host.asked[0].text, "which?");
});

test("a step that was done is not done again, and fails as it did", async () => {
  const host = new ScriptedHost();
  let done = 0;
  const run = agent(async (ctx) => {
    const count = await ctx.step("count", async () => ++done);
    const failed = await ctx.step("fail", () => { throw Failure.denied("no"); }).catch((thrown) => thrown.message);
    const large = await ctx.step("large", () => "x".repeat(2 << 20)).catch((thrown) => thrown.kind);
    return [count, failed, large].join(" ");
  });
  assert.equal((await host.run(run)).text, "1 no exhausted");
  assert.equal((await host.run(run)).text, "1 no exhausted");
});

test("others are found by what is asked of them", async () => {
  const host = new ScriptedHost().agent("codex", "fine");
  const run = agent(async (ctx) => {
    const [best] = await ctx.find({ query: "review this", tags: ["git"] });
    await ctx.find("anybody");
    return (await ctx.call(best.id, "go")).text;
  });
  assert.equal((await host.run(run)).text, "fine");
  assert.deepEqual(host.searches, [{ query: "review this", tags: ["git"] }, { query: "anybody" }]);
});

test("a cancelled task ends with an exception that passes", async () => {
  const host = new ScriptedHost().cancelAfter(1);
  let cleaned = false;
  const run = agent(async (ctx) => {
    try {
      await ctx.say("one");
      await ctx.say("two");
    } finally {
      cleaned = true;
    }
  });
  assert.ok((await host.run(run).catch((thrown) => thrown)) instanceof Cancelled);
  assert.ok(cleaned);
});

test("progress, cards and health", async () => {
  const host = new ScriptedHost();
  await host.run(agent(async (ctx) => ctx.progress(40.4, "some")));
  assert.deepEqual(host.events[0].metadata, { progress: { percent: 40 } });
  const skilled = agent(async () => {}, { card: { ...card, skills: [{ id: "a", name: "A", description: "b" }] } });
  assert.deepEqual(host.card(skilled).skills, [{ tags: [], id: "a", name: "A", description: "b" }]);
  const inputSchema = { type: "object", required: ["article"] };
  const typed = agent(async () => {}, { card: { ...card, skills: [{ id: "a", name: "A", description: "b", inputSchema }] } });
  assert.deepEqual(host.card(typed).skills[0].inputSchema, inputSchema);
  assert.equal((await host.health(skilled)).status, "healthy");
  const sick = agent(async () => {}, { health: () => { throw new Error("no model"); } });
  assert.match((await host.health(sick)).detail, /^Error: no model \(at agent\.test\.js:\d+\)$/);
  assert.throws(() => defineAgent({ card: { name: "x" }, run() {} }), /card\.description/);
  assert.throws(() => defineAgent({ card }), /`run` is missing/);
});

test("what it has in mind is kept and handed over", async () => {
  const host = new ScriptedHost().agent("coder", "done");
  const run = agent(async (ctx) => {
    const { memory } = ctx;
    await memory.setGoal("ship");
    await memory.addThought("the cache is warm");
    await memory.private.addThought("mine");
    await memory.decide("database", "sqlite", "one file");
    await memory.decide("database", "postgres");
    await memory.setVar("depth", 3);
    await memory.private.setVar("key", "k");
    await memory.remember("fact1", { info: "details" });
    await memory.remember("eventA", { action: "interacted" }, "episodic");
    const found = (await memory.recall("any details?")).map((item) => item.id);
    await ctx.call("coder", "go", { inheritWorkingMemory: true, inheritMemory: "cache", memoryScope: "minimal", memoryBytes: 100 });
    await memory.setVar("key", undefined);
    await memory.forget("eventA");
    const [decision] = await memory.decisions();
    const [vars, thoughts] = [JSON.stringify(await memory.vars()), await memory.thoughts()];
    return `${await memory.goal()} ${decision.value} ${vars} ${found} ${thoughts.length} ${(await memory.recall()).length}`;
  });
  assert.equal((await host.run(run)).text, 'ship postgres {"depth":3} fact1 2 1');
  assert.deepEqual(host.mind.working.thoughts[1], { content: "mine", private: true });
  assert.equal(host.mind.working.privateVariables, undefined);
  const { options } = host.calls[0];
  assert.deepEqual([options.setInheritWorkingMemory, options.setMemoryScope], [true, "minimal"]);
});

test("messages at work are read and sent", async () => {
  const host = new ScriptedHost().agent("coder", "done").message("faster");
  const run = agent(async (ctx) => {
    const call = ctx.start("coder", "go");
    call.send((await ctx.nextMessage()).text);
    await assert.rejects(ctx.nextMessage({ timeout: 1 }), (why) => why.kind === "timeout");
    return "no more";
  });
  assert.equal((await host.run(run)).text, "no more");
  assert.deepEqual(host.sent.map(({ agent, message }) => [agent, message.text]), [["coder", "faster"]]);
});

test("rule answers before client", async () => {
  const host = new ScriptedHost().rule("ls").rule("npm", { denied: "use pnpm" }).answer("yes");
  const run = agent(async (ctx) => {
    const ask = (request) => ctx.requestPermission({ vendor: "mine", request }, `${request}?`);
    const [byRule, denied, asked] = [await ask("ls"), await ask("npm"), await ask("rm")];
    assert.deepEqual([ctx.permissionDenial({ request: "npm" }), ctx.permissionDenial({ request: "rm" })], ["use pnpm", undefined]);
    return `${byRule.allowedBy} ${denied.denied} ${asked.answer.text}`;
  });
  assert.equal((await host.run(run)).text, "ls use pnpm yes");
  assert.deepEqual(host.asked.map((prompt) => prompt.text), ["rm?"]);
});

test("a child works in a worktree", async () => {
  const host = new ScriptedHost().agent("coder", "done");
  const run = agent(async (ctx) => {
    await ctx.call("coder", "go", { worktree: true });
    const asked = { parts: [{ text: "go" }], metadata: { permissions: "edit" } };
    await ctx.call("coder", asked, { worktree: { task: "t1" } });
    await ctx.call("coder", asked);
    return "done";
  });
  assert.equal((await host.run(run)).text, "done");
  const told = host.calls.map((call) => call.message.metadata);
  const ofFirst = { permissions: "edit", worktree: { task: "t1" } };
  assert.deepEqual(told, [{ worktree: true }, ofFirst, { permissions: "edit" }]);
});

test("workspace files are read, written and listed", async () => {
  const host = new ScriptedHost().workspace({ "README.md": "hello", "src/a.js": "" });
  const run = async (ctx) => {
    await ctx.workspace.write("notes/today.md", await ctx.workspace.read("/workspace/README.md"));
    return (await ctx.workspace.list()).concat(await ctx.workspace.list("src")).join(" ");
  };
  assert.equal((await host.run(agent(run))).text, "README.md notes/ src/ a.js");
  assert.equal(host.workspaceFile("notes/today.md"), "hello");
  const read = (path) => agent((ctx) => ctx.workspace.read(path));
  await assert.rejects(host.run(read("other.md")), { kind: "invalid" });
  await assert.rejects(host.run(read("../secret")), /outside of the workspace/);
  await assert.rejects(new ScriptedHost().run(read("README.md")), { kind: "denied" });
  const readOnly = new ScriptedHost().workspace({}, { readOnly: true });
  await assert.rejects(readOnly.run(agent((ctx) => ctx.workspace.write("x", "y"))), { kind: "denied" });
});

test("workspace of a component uses the functions of WASI", () => {
  const files = new Map([["a.md", new TextEncoder().encode("hello")]]);
  const open = (path, create) => {
    if (!create.create && !create.directory && !files.has(path)) throw { payload: "no-entry" };
    if (create.truncate) files.set(path, new Uint8Array());
    const entries = [{ name: "src", type: "directory" }, { name: "a.md", type: "regular-file" }];
    return {
      read: (length, at) => [files.get(path).slice(at, at + 2), at + 2 >= files.get(path).length],
      write: (bytes, at) => {
        files.set(path, new Uint8Array([...files.get(path).slice(0, at), ...bytes.slice(0, 3)]));
        return Math.min(3, bytes.length);
      },
      readDirectory: () => ({ readDirectoryEntry: () => entries.shift() }),
    };
  };
  const made = [];
  const root = { openAt: (_, path, create) => open(path, create), createDirectoryAt: (path) => void made.push(path) };
  const workspace = workspaceOf({ getDirectories: () => [[root, "/workspace"]] });
  assert.equal(new TextDecoder().decode(workspace.read("a.md")), "hello");
  workspace.write("b/c/d.md", new TextEncoder().encode("written"));
  assert.deepEqual([made, new TextDecoder().decode(files.get("b/c/d.md"))], [["b", "b/c"], "written"]);
  assert.deepEqual(workspace.list(""), ["src/", "a.md"]);
  assert.throws(() => workspace.read("x"), { kind: "invalid", message: "read `x`: there is no such file in the workspace" });
  assert.throws(() => workspaceOf({ getDirectories: () => [] }).read("x"), { kind: "denied" });
});
