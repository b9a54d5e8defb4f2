// Tests of what comes from the hub: events, logs, conversations, questions and filters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { base64url } from "../src/hub/dpop.ts";
import { ServerEventParser } from "../src/hub/server-events.ts";
import { outcomeText, ownOutcome, verdict } from "../src/inbox/outcome.ts";
import { detailsOf, summaryOf } from "../src/inbox/summary.ts";
import { visibleEnd } from "../src/parts/LongText.tsx";
import { blocksOf } from "../src/task/blocks.ts";
import { decodeBase64, downloadName, isImage } from "../src/task/files.ts";
import { TaskLog } from "../src/task/log.ts";
import { listParams, matches, readFilter } from "../src/tasks/filter.ts";

const message = (messageId: string, role: string, text: string) => ({ messageId, role, parts: [{ kind: "text", text }] }) as never;
const status = (state: string, timestamp: string, extra: object = {}, id?: string) =>
  ({
    kind: "status-update",
    taskId: "t",
    final: false,
    status: { state, timestamp, ...(id ? { message: message(id, "agent", id) } : {}) },
    metadata: extra,
  }) as never;

test("server_events_survive_any_split", () => {
  const text = "retry: 1000\n\nid: 1\ndata: {\"a\":1}\n\n: comment\n\nid: 2\r\ndata: x\r\ndata: y\r\n\r\n";
  const whole = new ServerEventParser().push(text);
  const parser = new ServerEventParser();
  const pieces = [...text].flatMap((it) => parser.push(it));
  assert.deepEqual(pieces, whole);
  assert.deepEqual(whole, [
    { data: '{"a":1}', id: "1" },
    { data: "x\ny", id: "2" },
  ]);
});

test("base64url_has_no_padding", () => {
  assert.equal(base64url(new Uint8Array([251, 255, 254, 1])), "-__-AQ");
});

test("log_merges_reports_of_a_tool", () => {
  const log = new TaskLog();
  log.apply(status("working", "1", { tool: { id: "a", title: "ls", status: "in_progress" } }), 1);
  log.apply(status("working", "2", { tool: { id: "a", status: "completed", output: "x" } }), 2);
  assert.equal(log.entries.length, 1);
  assert.deepEqual(log.entries[0]?.kind === "tool" && log.entries[0].tool, { id: "a", title: "ls", status: "completed", output: "x" });
  assert.equal(log.changes.length, 1);
});

test("log_appends_pieces_of_an_artifact", () => {
  const log = new TaskLog();
  const piece = (text: string, append: boolean, seq: number) =>
    log.apply(
      { kind: "artifact-update", taskId: "t", append, artifact: { artifactId: "a", parts: [{ kind: "text", text }] } } as never,
      seq,
    );
  piece("one ", false, 1);
  piece("two", true, 2);
  const entry = log.entries[0];
  assert.deepEqual(entry?.kind === "artifact" && entry.artifact.parts, [{ kind: "text", text: "one two" }]);
});

test("conversation_joins_history_and_log", () => {
  const log = new TaskLog();
  log.apply(status("working", "1", { tool: { id: "a", title: "ls" } }), 1);
  log.apply(status("input-required", "2", {}, "question"), 2);
  log.apply(status("working", "3", { tool: { id: "b", title: "cat" } }), 3);
  log.apply(status("completed", "4", {}, "end"), 4);
  const task = {
    status: { state: "completed", timestamp: "4", message: message("end", "agent", "end") },
    history: [message("u1", "user", "do"), message("question", "agent", "?"), message("u2", "user", "yes")],
  };
  assert.deepEqual(
    blocksOf(task as never, log.entries).map((it) => it.kind),
    ["user", "steps", "agent", "user", "steps", "agent"],
  );
  assert.deepEqual(
    blocksOf(task as never, []).map((it) => it.kind),
    ["user", "agent", "user", "agent"],
  );
});

test("answer_is_shown_once", () => {
  const task = {
    status: { state: "completed", timestamp: "4", message: message("end", "agent", "done\n") },
    history: [message("u1", "user", "do")],
    artifacts: [{ artifactId: "answer", parts: [{ kind: "text", text: "done" }] }],
  };
  assert.deepEqual(
    blocksOf(task as never, []).map((it) => it.kind),
    ["user", "artifact"],
  );
});

const question = { id: "q", kind: "permission", text: "t", request: "r", path: ["a"], agentId: "a" };

test("summary_is_the_exact_command", () => {
  const action = { kind: "run", commands: [["git", "add", "a b"], ["make"]], directory: "/w" };
  assert.deepEqual(summaryOf({ ...question, permission: { vendor: "claude", action } } as never), {
    isCommand: true,
    text: "git add 'a b' && make",
  });
  assert.equal(summaryOf({ ...question, text: "Answer `allow` or `deny`.\n\nship" } as never).text, "ship");
});

test("details_are_those_of_this_question", () => {
  const task = {
    metadata: { question: { id: "q" } },
    status: { message: { parts: [{ kind: "data", data: { tool: "Edit", changes: [{ path: "a", diff: "d" }, { path: 1 }] } }] } },
  };
  assert.deepEqual(detailsOf(task as never, "q")?.changes, [{ path: "a", diff: "d" }]);
  assert.equal(detailsOf(task as never, "other"), undefined);
});

test("outcomes_say_who_and_how", () => {
  const past = { kind: "permission", outcome: "answered", answeredBy: "operator" };
  assert.equal(outcomeText({ ...past, answer: "no, use pnpm" } as never), "Denied by operator: use pnpm");
  assert.equal(outcomeText({ ...past, answer: "allow" } as never), "Allowed by operator");
  assert.equal(verdict({ ...past, answer: "allowance" } as never), "denied");
  assert.equal(outcomeText({ ...past, outcome: "allowed-by-rule", rule: "5b" } as never), "Allowed by rule 5b");
});

test("files_of_agents_are_never_pages", () => {
  assert.equal(isImage("image/png"), true);
  for (const type of ["image/svg+xml", "text/html", "image/png2", undefined]) assert.equal(isImage(type), false, String(type));
  assert.equal(downloadName("../../etc/passwd"), "passwd");
  assert.equal(downloadName("..\\a\\.bashrc"), "bashrc");
  assert.equal(/\u202e/.test(downloadName("x\u202Egnp.exe")), false);
  assert.equal(downloadName(""), "file");
  assert.deepEqual([...(decodeBase64("AAE_") ?? [])], [0, 1, 63]);
  assert.equal(decodeBase64("%"), undefined);
});

test("filters_are_those_of_the_address", () => {
  const filter = readFilter(new URLSearchParams("state=failed&q=flag"));
  assert.deepEqual(listParams(filter), { state: "failed" });
  const task = { id: "01a2", agentId: "codex", history: [message("1", "user", "Add a FLAG")] };
  assert.equal(matches(task as never, "flag codex"), true);
  assert.equal(matches(task as never, "flag gemini"), false);
});

test("long_texts_end_at_a_line", () => {
  assert.equal(visibleEnd("a\nb\nc\nd", 100, 2), 3);
  assert.equal(visibleEnd("abcdef", 4, 10), 4);
  assert.equal(visibleEnd("abc", 10, 10), 3);
});

test("tools_of_a_wrong_shape_are_harmless", () => {
  const log = new TaskLog();
  const tool = { id: "a", title: { x: 1 }, name: 7, status: null, locations: [{ path: 3 }, { path: "b", line: "x" }, null] };
  log.apply(status("working", "1", { tool, plan: [1, { content: {}, status: [] }] }), 1);
  assert.deepEqual(log.entries[0]?.kind === "tool" && log.entries[0].tool, { id: "a", locations: [{ path: "b" }] });
  assert.deepEqual(log.plan, [{ content: "", status: "pending" }]);
});

test("only_a_clear_yes_allows", () => {
  for (const answer of ["allow", "yes", "Y", " Yes. "]) assert.equal(ownOutcome("permission", answer), "Allowed by you");
  for (const answer of ["deny", "no, use pnpm", "allow nothing", "yes but no", ""]) {
    assert.equal(ownOutcome("permission", answer), "Denied by you");
  }
  assert.equal(ownOutcome("input", "no, blue"), "Answered by you");
});
