// Tests of pure functions: times, hidden characters, links, entities, diffs and shell words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDiff, parseDiff } from "../src/text/diff.ts";
import { decodeEntities } from "../src/text/entities.ts";
import { safeLink, saysTarget } from "../src/text/links.ts";
import { duration, isUrgent, relative, remaining, untilTomorrow } from "../src/text/time.ts";
import { plainLine } from "../src/text/plain.ts";
import { exactSegments, lineSegments, proseSegments, visibleText } from "../src/text/visible.ts";
import { cut, shellText, titleOf, tokens } from "../src/text/words.ts";

const NOW = Date.parse("2026-01-31T12:00:00.000Z");

test("relative_times_read_like_speech", () => {
  assert.equal(relative("2026-01-31T11:59:55.000Z", NOW), "just now");
  assert.equal(relative("2026-01-31T11:58:00.000Z", NOW), "2 min ago");
  assert.equal(relative("2026-01-31T15:00:00.000Z", NOW), "in 3 h");
  assert.equal(relative("nonsense", NOW), "nonsense");
});

test("deadlines_within_an_hour_are_urgent", () => {
  assert.equal(isUrgent("2026-01-31T12:59:00.000Z", NOW), true);
  assert.equal(isUrgent("2026-01-31T13:01:00.000Z", NOW), false);
  assert.equal(isUrgent(undefined, NOW), false);
  assert.equal(remaining("2026-01-31T12:35:00.000Z", NOW), "35 min left");
  assert.equal(remaining("2026-01-31T11:00:00.000Z", NOW), "overdue");
});

test("durations_have_two_units", () => {
  assert.equal(duration("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00.250Z"), "250 ms");
  assert.equal(duration("2026-01-31T12:00:00.000Z", "2026-01-31T12:01:20.000Z"), "1 min 20 s");
  assert.equal(duration("2026-01-30T10:00:00.000Z", "2026-01-31T12:00:00.000Z"), "1 d 2 h");
});

test("tomorrow_is_nine_in_the_morning", () => {
  assert.equal(untilTomorrow(new Date(2026, 0, 31, 20, 0)), 13 * 3_600_000);
});

test("bidi_controls_become_escapes", () => {
  assert.equal(visibleText("a\u202Eb\u2066c"), "a\\u202eb\\u2066c");
  assert.deepEqual(
    proseSegments("x\u200b").map((it) => it.kind),
    ["text", "escape"],
  );
});

test("line_ends_and_tabs_stay", () => {
  assert.equal(visibleText("a\r\nb\tc\n"), "a\nb\tc\n");
  assert.equal(visibleText("a\rb"), "a\\u000db");
});

test("commands_mark_letters_and_spaces_that_mislead", () => {
  assert.deepEqual(
    exactSegments("gіt\u00a0x").map((it) => [it.kind, it.text]),
    [
      ["text", "g"],
      ["foreign", "і"],
      ["text", "t"],
      ["escape", "\\u00a0"],
      ["text", "x"],
    ],
  );
  assert.equal(exactSegments("\u{e0041}")[0]?.text, "\\u{e0041}");
  assert.equal(exactSegments("\ud800")[0]?.kind, "escape");
});

test("long_runs_of_combining_marks_are_counted", () => {
  const shown = (text: string) => proseSegments(text).map((it) => [it.kind, it.text]);
  for (const mark of ["\u0300", "\u200d", "\u{1f3fb}"]) {
    assert.deepEqual(shown(`Z${mark.repeat(50_000)}!`), [
      ["text", "Z"],
      ["escape", "[50,000 combining marks]"],
      ["text", "!"],
    ]);
  }
  assert.deepEqual(shown(`Z${"\u0300".repeat(8)}`), [["text", `Z${"\u0300".repeat(8)}`]]);
  assert.equal(exactSegments(`Z${"\u0300".repeat(9)}`)[1]?.text, "[9 combining marks]");
});

test("neighbouring_hidden_characters_join", () => {
  assert.deepEqual(proseSegments("a\u202e\u200bb"), [
    { kind: "text", text: "a" },
    { kind: "escape", text: "\\u202e\\u200b", codes: "U+202E U+200B" },
    { kind: "text", text: "b" },
  ]);
  assert.deepEqual(
    exactSegments("при").map((it) => [it.text, it.codes]),
    [["при", "U+043F U+0440 U+0438"]],
  );
});

test("hidden_characters_beyond_a_limit_are_counted", () => {
  const one = proseSegments("\u202e\u200b".repeat(20_000));
  assert.deepEqual(one.map((it) => it.kind), ["escape", "text", "escape"]);
  assert.equal(one.at(-1)?.text, "[39,800 more hidden characters]");
  const many = exactSegments("a\u200b".repeat(20_000));
  assert.ok(many.length < 500, String(many.length));
  assert.equal(many.at(-2)?.text.startsWith("a\ufffda\ufffd"), true, "their places are marked");
  assert.equal(many.at(-1)?.text, "[19,800 more hidden characters]");
  assert.equal(lineSegments("\u200b".repeat(9)).at(-1)?.text, "[5 more hidden characters]");
});

test("prose_keeps_letters_of_all_languages", () => {
  const text = "Grüße, привет, 你好, שלום";
  assert.deepEqual(proseSegments(text), [{ kind: "text", text }]);
});

test("links_are_http_or_mail_only", () => {
  for (const href of ["javascript:alert(1)", " JaVaScRiPt:x", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//x", "/x", "blob:https://x/1", "https://a@b.example/"]) {
    assert.equal(safeLink(href), undefined, href);
  }
  assert.deepEqual(safeLink("https://example.com/a"), { href: "https://example.com/a", target: "example.com" });
  assert.equal(safeLink("mailto:a@example.com")?.target, "a@example.com");
  assert.equal(safeLink("java\nscript:alert(1)"), undefined);
});

test("link_texts_that_name_another_host_differ", () => {
  const link = safeLink("https://evil.example/x")!;
  assert.equal(saysTarget("https://bank.example", link), false);
  assert.equal(saysTarget("click", link), false);
  assert.equal(saysTarget("evil.example", link), true);
  assert.equal(saysTarget("https://evil.example/y", link), true);
  assert.equal(saysTarget("bank.example evil.example", link), false);
});

test("hosts_of_other_alphabets_are_punycode", () => {
  assert.equal(safeLink("https://ex\u0430mple.com/")?.target.startsWith("xn--"), true);
});

test("entities_decode_once", () => {
  assert.equal(decodeEntities("&lt;b&gt; &amp;amp; &#65;&#x41; &unknown;"), "<b> &amp; AA &unknown;");
  assert.equal(decodeEntities("&#xd800; &#0;"), "\ufffd \ufffd");
});

const DIFF = `diff --git a/src/a.rs b/src/b.rs
similarity index 90%
rename from src/a.rs
rename to src/b.rs
--- a/src/a.rs
+++ b/src/b.rs
@@ -1,3 +1,4 @@ fn x
 one
--- two
+++ two
+three
 four
\\ No newline at end of file
diff --git a/x.bin b/x.bin
new file mode 100644
Binary files /dev/null and b/x.bin differ
`;

test("diffs_have_files_lines_and_numbers", () => {
  const [file, binary] = parseDiff(DIFF);
  assert.equal(file?.path, "src/b.rs");
  assert.equal(file?.from, "src/a.rs");
  assert.equal(file?.insertions, 2);
  assert.equal(file?.deletions, 1);
  const lines = file?.hunks[0]?.lines ?? [];
  assert.deepEqual(lines[1], { kind: "remove", text: "-- two", before: 2 });
  assert.deepEqual(lines[2], { kind: "add", text: "++ two", after: 2 });
  assert.equal(lines.at(-1)?.kind, "note");
  assert.deepEqual(binary?.notes, ["new file", "binary"]);
});

test("diffs_are_recognized", () => {
  assert.equal(isDiff(DIFF), true);
  assert.equal(isDiff("a list\n--- a rule\n"), false);
});

test("shell_words_are_quoted", () => {
  assert.equal(shellText(["git", "commit", "-m", "it's done"]), "git commit -m 'it'\\''s done'");
  assert.equal(shellText(["echo", ""]), "echo ''");
});

test("titles_are_one_line", () => {
  const task = { history: [{ role: "user", messageId: "1", parts: [{ kind: "text", text: " a\n b " }] }] };
  assert.equal(titleOf(task as never), "a b");
  assert.equal(titleOf({ request: "## Result A **list**" } as never), "Result A list");
  assert.equal(titleOf({ request: "" } as never), "(no text)");
  assert.equal(cut("abcdef", 3), "abc…");
  assert.equal(cut("ab\u{1f600}", 3), "ab…");
  assert.equal(tokens(12_345), "12.3k");
});

test("titles_have_no_marks_of_markdown", () => {
  const cases: [string, string][] = [
    ["## Result\n\nA **list** with `code` and a [link](https://example.com/):", "Result A list with code and a link:"],
    ["Fix ***all*** of _them_, ~~not~~ `a**b**`", "Fix all of them, not a**b**"],
    ["**a `b` c** ![image](x.png \"title\")", "a b c image"],
    ["```rust\nfn main() {}\n```", "fn main() {}"],
    ["2*3*4, a_b_c, src/**/*.rs src/**/*.ts, __init__ and C# #123", "2*3*4, a_b_c, src/**/*.rs src/**/*.ts, __init__ and C# #123"],
    ["a * b * c", "a * b * c"],
    ["", ""],
  ];
  for (const [text, title] of cases) assert.equal(plainLine(text), title);
});

test("titles_of_hostile_texts_are_fast", () => {
  const begin = performance.now();
  for (const mark of ["*a ", "**a ", "_a ", "[", "`a", "![a](", "~~a "]) plainLine(mark.repeat(100_000));
  assert.ok(performance.now() - begin < 500);
});
