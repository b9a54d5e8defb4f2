// Tests of the Markdown path: what hostile texts become.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lexer } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { headingLevels, renderMarkdown } from "../src/parts/Markdown.tsx";

type Found = { tags: Set<string>; props: Set<string>; hrefs: string[]; text: string };

/** Walks the elements, calling components as Preact would. */
function walk(node: ComponentChildren, found: Found): void {
  if (typeof node === "string" || typeof node === "number") found.text += node;
  else if (Array.isArray(node)) for (const child of node) walk(child, found);
  else if (typeof node === "object" && node !== null && "type" in node) {
    const { type, props } = node as VNode<Record<string, unknown>>;
    if (typeof type === "string") {
      found.tags.add(type);
      for (const name of Object.keys(props)) found.props.add(name);
      if (typeof props.href === "string") found.hrefs.push(props.href);
      walk(props.children as ComponentChildren, found);
    } else if (["Code", "Diff"].includes(type.name)) {
      found.tags.add(type.name);
      found.text += String(props.text);
    } else {
      walk((type as (props: unknown) => ComponentChildren)(props), found);
    }
  }
}

function render(text: string): Found {
  const found: Found = { tags: new Set(), props: new Set(), hrefs: [], text: "" };
  walk(renderMarkdown(lexer(text, { gfm: true })), found);
  return found;
}

const ALLOWED = new Set(
  "h3 h4 h5 h6 p strong em del br hr code blockquote ul ol li input div table thead tbody tr th td a span bdi Code Diff".split(" "),
);

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "a <b onmouseover=alert(1)>b</b> <svg/onload=alert(1)>",
  "<iframe srcdoc='<script>1</script>'></iframe>",
  "[x](javascript:alert(1))",
  "[x](JAVASCRIPT:alert(1))",
  "[x](java&#115;cript:alert(1))",
  "[x](&#x6A;avascript:alert(1))",
  "[x](data:text/html;base64,PHN2Zz4=)",
  "[x](vbscript:x)",
  "[x](file:///etc/passwd)",
  "![x](javascript:alert(1))",
  '![x"onerror="alert(1)](https://e.example/x.png)',
  "<javascript:alert(1)>",
  "[x]: javascript:alert(1)\n\n[x]",
  '[x](https://e.example "onmouseover=alert(1)")',
  "```html\n<script>1</script>\n```",
  "|a|\n|---|\n|<script>1</script>|",
  "<style>*{display:none}</style>",
  "<form action=https://e.example><input name=p></form>",
  "<a href='javascript:alert(1)'>x</a>",
  "<!-- --><script>1</script>",
  "<meta http-equiv=refresh content='0;url=https://e.example'>",
  "# <img src=x onerror=1>",
  "- [ ] <script>1</script>",
  "[<img src=x onerror=1>](https://e.example)",
  "<https://a:b@e.example/>",
];

test("hostile_markdown_becomes_text_and_safe_links", () => {
  for (const text of HOSTILE) {
    const found = render(text);
    for (const tag of found.tags) assert.ok(ALLOWED.has(tag), `${text}: ${tag}`);
    for (const name of found.props) {
      assert.ok(!/^on|^style$|^src|srcdoc|innerHTML|dangerously|action/i.test(name), `${text}: ${name}`);
    }
    for (const href of found.hrefs) assert.match(href, /^(https?:\/\/[^@]+$|mailto:)/, text);
  }
});

test("html_is_shown_as_it_is_written", () => {
  assert.ok(render("a <b onclick=x>b</b>").text.includes("<b onclick=x>"));
});

test("links_show_a_differing_host", () => {
  assert.ok(render("[https://bank.example](https://evil.example/)").text.includes("(evil.example)"));
  assert.ok(!render("<https://bank.example/x>").text.includes("("));
});

test("deep_nesting_ends_as_text", () => {
  const found = render(`${"> ".repeat(60)}x`);
  assert.ok(found.text.includes("x"));
});

test("heading_levels_have_no_gap", () => {
  const tokens = lexer("#### a\n\n# b\n\n#### c\n\n## d\n");
  assert.deepEqual([...headingLevels(tokens).values()], [3, 3, 4, 4]);
});
