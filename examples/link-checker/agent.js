/**
 * Checks the links of a web page, and reports the broken ones and those broken since the last
 * check.
 */

import { Cancelled, Failure, defineAgent } from "a2a-hub-sdk";

const MAX_LINKS = 200;
const LINK = /<(?:a|link|img|script|iframe|source)\b[^>]*?\b(?:href|src)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/gi;

export default defineAgent({
  card: {
    name: "link-checker",
    description: "Checks the links of a web page, and tells which are broken",
    version: "0.1.0",
    skills: [
      {
        id: "check",
        name: "Check links",
        description: "Follows every link of a page once, and reports the broken ones, new ones first",
        tags: ["web", "links"],
        examples: ["https://example.com", "check https://example.com/docs"],
      },
    ],
  },

  async run(ctx, task) {
    const found = /https?:\/\/\S+/.exec(task.text)?.[0] ?? (await ctx.ask("Which page? Give its URL.")).text.trim();
    const page = parse(found);
    if (!page) return ctx.reject(`\`${found}\` is no URL of a web page; give one such as https://example.com`);

    await ctx.say(`reading ${page}`);
    const answer = await ctx.fetch(page, { timeout: 30_000 });
    if (!answer.ok) return ctx.fail("page_not_read", `${page} answers ${answer.status}`);
    const links = linksOf(await answer.text(), page);

    const results = [];
    for (const [index, link] of links.entries()) {
      ctx.checkCancelled();
      await ctx.progress((100 * index) / links.length, link);
      results.push({ link, ...(await check(ctx, link)) });
    }

    const broken = results.filter(({ problem }) => problem);
    const key = `broken/${await fingerprint(page.href)}`;
    const before = new Set((await ctx.recall(key)) ?? []);
    await ctx.remember(key, broken.map(({ link }) => link).slice(0, 50));
    const report = { page: page.href, checked: results.length, broken: broken.map((one) => ({ ...one, isNew: !before.has(one.link) })) };
    await ctx.artifact("report", [{ text: markdown(report), mediaType: "text/markdown" }, { data: report }], { name: "Links" });
    if (broken.length === 0) return `${results.length} links, all well`;
    const added = report.broken.filter(({ isNew }) => isNew).length;
    return `${broken.length} of ${results.length} links are broken, ${added} of them since the last time:\n${markdown(report)}`;
  },
});

function parse(text, base) {
  try {
    const url = new URL(text, base);
    return /^https?:$/.test(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** Links of the page without fragments, each once. */
export function linksOf(html, page) {
  const links = new Set();
  for (const [, double, single, bare] of html.replace(/<!--.*?-->/gs, "").matchAll(LINK)) {
    const url = parse((double ?? single ?? bare).replaceAll("&amp;", "&").trim(), page);
    if (!url) continue;
    url.hash = "";
    links.add(url.href);
    if (links.size === MAX_LINKS) break;
  }
  links.delete(page.href);
  return [...links];
}

/** Problem of a link as a text, or nothing. A link whose host is not granted is skipped. */
async function check(ctx, link) {
  try {
    let answer = await ctx.fetch(link, { method: "HEAD", timeout: 15_000 });
    // Some servers support only GET.
    if ([403, 405, 501].includes(answer.status)) answer = await ctx.fetch(link, { timeout: 15_000 });
    const { status } = answer;
    if (status >= 300 && status < 400) return moved(answer, link);
    return status < 400 ? { status } : { status, problem: `answers ${status}` };
  } catch (failed) {
    if (failed instanceof Cancelled || !(failed instanceof Failure)) throw failed;
    if (failed.kind === "denied") return { skipped: "its host is not granted" };
    return { problem: failed.message };
  }
}

function moved(answer, link) {
  const to = parse(answer.headers.get("location") ?? "", link);
  return to ? { status: answer.status, movedTo: to.href } : { status: answer.status, problem: "redirects to nowhere" };
}

function markdown({ broken }) {
  const line = ({ link, problem, isNew }) => `- ${isNew ? "**new** " : ""}${link}: ${problem}`;
  return [...broken].sort((a, b) => Number(b.isNew) - Number(a.isNew)).map(line).join("\n");
}

/** Short key of a page: a hash of its URL (FNV-1a). */
function fingerprint(text) {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  return sum.toString(16);
}
