import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure } from "a2a-hub-sdk";
import { ScriptedHost } from "a2a-hub-sdk/testing";
import agent, { linksOf } from "./agent.js";

const PAGE = `<a href="/well">x</a> <a class=y href='broken?a=1&amp;b=2#part'>x</a> <!-- <a href="/hidden">x</a> -->
<img src=https://other.example/i.png> <a href="mailto:me@example.com">x</a> <a href="#here">x</a> <a href="/well#again">x</a>`;

const site = (answers) => (request) => answers[new URL(request.url).pathname] ?? { status: 404 };
const web = (host, answers) => {
  for (let i = 0; i < 9; i++) host.respond(site(answers));
  return host;
};

test("links are found once, as the page means them", () => {
  const links = linksOf(PAGE, new URL("https://example.com/docs/"));
  assert.deepEqual(links, ["https://example.com/well", "https://example.com/docs/broken?a=1&b=2", "https://other.example/i.png"]);
});

test("broken links are reported, new ones first", async () => {
  const answers = { "/docs/": { body: PAGE }, "/well": { status: 301, headers: { Location: "/" } }, "/i.png": Failure.denied("not granted") };
  const host = web(new ScriptedHost(), answers);
  const first = await host.run(agent, "check https://example.com/docs/ please");
  assert.match(first.text, /^1 of 3 links are broken, 1 of them since the last time:\n- \*\*new\*\* https:\/\/example\.com\/docs\/broken\?a=1&b=2: answers 404$/);
  assert.deepEqual(host.requests.map(({ method }) => method), ["GET", "HEAD", "HEAD", "HEAD"]);
  const again = await web(host, answers).run(agent, "https://example.com/docs/");
  assert.match(again.text, /broken, 0 of them/);
  const well = await web(new ScriptedHost(), { "/docs/": { body: "" } }).run(agent, "https://example.com/docs/");
  assert.equal(well.text, "0 links, all well");
});

test("it asks for a page, and says what is none", async () => {
  const host = new ScriptedHost().answer("ftp://example.com");
  assert.equal((await host.run(agent, "hello")).state, "rejected");
  const gone = await web(new ScriptedHost(), { "/x": { status: 500 } }).run(agent, "https://example.com/x");
  assert.deepEqual([gone.state, gone.metadata.reason], ["failed", "page_not_read"]);
});
