// Stories about accessibility, many tabs, the first view and long lists. The first one also takes
// the screenshots, with `--screens`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { drawn, each, openLink } from './browser.mjs';
import { check, until } from './hub.mjs';

/** Heights of the windows by their widths; the widest is for screenshots only. */
const HEIGHTS = { 360: 740, 1024: 768, 1920: 1080 };
const CHECKED = [360, 1024];
const PICTURED = [360, 1024, 1920];
const THEMES = ['light', 'dark'];
/** Rules of axe-core that depend on colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
const LANES = 4;
/** Limit of the first view: bytes on the wire, with the answers of the hub. */
const FIRST_VIEW_BYTES = 80_000;
const FIRST_VIEW_MS = 2_000;
const TASKS = 2_000;
const ROWS = 200;

const TEXT = `## Result

A **list** with \`code\` and a [link](https://example.com/):

- one
- two

| file | lines |
| --- | ---: |
| a.rs | 12 |

\`\`\`diff
--- a/a.rs
+++ b/a.rs
@@ -1,2 +1,2 @@
 fn main() {
-    old();
+    new();
\`\`\``;

/** No violations of axe-core, and no sideways scrolling, on any screen in both themes. */
export async function accessible(stage) {
  const { browser, hub, open, context, out, figures, screens: takesScreens } = stage;
  const folder = join(out, 'screens');
  if (takesScreens) mkdirSync(folder, { recursive: true });
  const full = await hub.send('echo', TEXT);
  const file = { name: 'notes.txt', mimeType: 'text/plain', bytes: 'aGk=' };
  const parts = await hub.send('echo', [{ kind: 'text', text: 'with parts' }, { kind: 'file', file }, { kind: 'data', data: { a: [1] } }]);
  await hub.send('test-guests', 'fail for the notices');
  const asked = await hub.ask('approval-gate', 'Delete the branch `old` of the repository');
  await hub.ask('test-guests', 'ask for a colour');
  await hub.ask('test-guests', 'test_elicitation_sep1330_enums which ones');
  const paired = (path, then) => async () => {
    const page = await open(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await then?.(page);
    return page;
  };
  const press = (key) => async (page) => {
    await page.getByRole('list', { name: 'Open questions' }).getByRole('listitem').first().waitFor();
    for (const it of key.split(' ')) await page.keyboard.press(it);
  };
  const screens = {
    'not-paired': async () => open('', await context()),
    pairing: async () => {
      const page = await open(undefined, await context());
      const { token } = await hub.offer();
      await openLink(page, hub, token);
      await page.getByRole('heading', { name: 'Compare this code' }).waitFor();
      return page;
    },
    inbox: paired('', press('j')),
    'inbox-form': paired('', (page) => page.getByRole('list', { name: 'Open questions' }).getByRole('button', { name: /test_elicitation/ }).click()),
    'inbox-batch': paired('', press('x j x Shift+Y')),
    history: paired('?view=history'),
    tasks: paired('tasks', (page) => page.getByRole('listitem').nth(1).waitFor()),
    'tasks-empty': paired('tasks?agent=nobody', (page) => page.getByText('No task matches.').waitFor()),
    task: paired(`tasks/${full.id}`, (page) => page.getByRole('article', { name: 'Message of echo' }).waitFor()),
    'task-parts': paired(`tasks/${parts.id}`, (page) => page.getByText('notes.txt').waitFor()),
    'task-question': paired(`tasks/${asked.task}`, (page) => page.getByRole('button', { name: /^Allow once/ }).waitFor()),
    'task-cancel': paired(`tasks/${asked.task}`, (page) => page.getByRole('button', { name: 'Cancel…' }).click()),
    'task-timeline': paired(`tasks/${full.id}?view=timeline`, (page) => page.getByRole('main').getByRole('listitem').first().waitFor()),
    'task-json': paired(`tasks/${full.id}?view=json`, (page) => page.getByRole('group', { name: 'The task as JSON' }).waitFor()),
    'no-task': paired('tasks/none'),
    send: paired('send', (page) => page.getByRole('radio').first().waitFor()),
    agents: paired('agents', (page) => page.getByRole('list', { name: 'Agents' }).getByRole('listitem').first().waitFor()),
    keys: paired('agents', (page) => page.keyboard.press('?')),
    'no-page': paired('nowhere'),
  };
  const found = [];
  await each(Object.entries(screens), LANES, async ([name, make]) => {
    const page = await make();
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      for (const width of takesScreens ? PICTURED : CHECKED) {
        await page.setViewportSize({ width, height: HEIGHTS[width] });
        await drawn(page);
        if (takesScreens) await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
        if (!CHECKED.includes(width)) continue;
        const where = `${name} ${theme} ${width}`;
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        if (isWide) found.push(`${where}: scrolls sideways`);
        // Another theme changes colours only.
        const rules = theme === THEMES[0] ? undefined : COLOUR_RULES;
        found.push(...(await violations(page, browser.axe, rules)).map((it) => `${where}: ${it}`));
      }
    }
    await page.close();
  });
  figures.accessible = { screens: Object.keys(screens).length, violations: found };
  check(found.length === 0, `${found.length} violations: ${found.slice(0, 12).join('; ')}`);
  return `${Object.keys(screens).length} screens`;
}

async function violations(page, axe, runOnly) {
  if (await page.evaluate(() => globalThis.axe === undefined)) await page.evaluate(`(() => { ${axe} })()`);
  return page.evaluate(async (runOnly) => {
    const options = { resultTypes: ['violations'], preload: false, ...(runOnly ? { runOnly } : {}) };
    const { violations } = await globalThis.axe.run(document, options);
    return violations.map((it) => `${it.id} (${it.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`).join(', ')})`);
  }, runOnly);
}

/** Eight tabs show a new question within five seconds, by one stream. */
export async function tabs({ hub, open, figures, watch }) {
  const before = await until('no other tab has a stream', async () => {
    const count = await hub.streams();
    return count === (await hub.streams()) && { count };
  });
  const pages = await Promise.all(Array.from({ length: 8 }, () => open('')));
  await Promise.all(pages.map((page) => page.getByRole('status').filter({ hasText: 'Connected' }).waitFor()));
  const text = `for eight tabs ${Date.now()}`;
  const seen = async (text) => {
    const begin = Date.now();
    await hub.ask('approval-gate', text);
    const rows = pages.filter((it) => !it.isClosed()).map((page) =>
      page.getByRole('list', { name: 'Open questions' }).getByText(text).first().waitFor({ timeout: 5_000 }),
    );
    await Promise.all(rows);
    return Date.now() - begin;
  };
  const all = await seen(text);
  const streams = await hub.streams();
  check(streams - before.count === 1, `${streams - before.count} streams for eight tabs`);
  const asked = watch.requests.filter((it) => it.body.includes('hub/events'));
  check(asked.length === 1, `${asked.length} requests for events`);
  // The tab that reads the stream is closed: another one reads on.
  await asked[0].page.close();
  const rest = await seen(`for seven tabs ${Date.now()}`);
  check((await hub.streams()) - before.count === 1, 'one stream for seven tabs');
  figures.tabs = { eightMs: all, sevenMs: rest };
  return `seen in all after ${all} ms, after a tab was closed in ${rest} ms`;
}

/** Reports when the inbox is painted, by the page's own clock. */
function reportFirstView() {
  const isInbox = () => document.querySelector('h1')?.textContent === 'Inbox'
    && document.querySelector('[aria-label="Open questions"] li, .empty');
  const observer = new MutationObserver(() => {
    if (!isInbox()) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstViewMs = performance.now(); }));
  });
  observer.observe(document, { childList: true, subtree: true });
}

/** The first view is small and fast, with an empty cache. */
export async function firstView({ hub, open, base, figures }) {
  await hub.ask('approval-gate', 'seen at once');
  const times = [];
  let bytes = {};
  for (let round = 0; round < 5; round += 1) {
    const page = await open();
    await page.addInitScript(reportFirstView);
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    const [addresses, sizes, encodings] = [new Map(), new Map(), new Set()];
    session.on('Network.responseReceived', ({ requestId, response }) => {
      addresses.set(requestId, new URL(response.url).pathname);
      const encoding = Object.entries(response.headers).find(([name]) => name.toLowerCase() === 'content-encoding');
      if (encoding) encodings.add(encoding[1]);
    });
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => sizes.set(requestId, encodedDataLength));
    await page.goto(`${base}/ui/`);
    await page.waitForFunction(() => window.firstViewMs !== undefined);
    times.push(await page.evaluate(() => window.firstViewMs));
    const all = [...sizes].map(([id, size]) => ({ path: addresses.get(id) ?? '', size }));
    const sum = (own) => all.filter((it) => it.path.startsWith('/ui/') === own).reduce((total, it) => total + it.size, 0);
    bytes = { page: sum(true), answers: sum(false), encodings: [...encodings].join(' ') };
    await page.close();
  }
  const [fastest, , median, , slowest] = times.map(Math.round).sort((a, b) => a - b);
  figures.firstView = { ...bytes, limitBytes: FIRST_VIEW_BYTES, fastest, median, slowest, targetMs: 300 };
  check(bytes.page > 1_000, bytes);
  check(bytes.page + bytes.answers < FIRST_VIEW_BYTES, `${bytes.page} bytes of the page and ${bytes.answers} of answers`);
  check(median < FIRST_VIEW_MS, `first view after ${median} ms`);
  return `${bytes.page} + ${bytes.answers} bytes (${bytes.encodings}), ${median} ms`;
}

/** Thousands of tasks: few rows in the document, and each can be reached. */
export async function load({ hub, open, figures }) {
  const { totalTasks } = await hub.call('hub/status');
  const missing = Array.from({ length: Math.max(0, TASKS - totalTasks) }, (_, at) => `task ${at} of many`);
  await each(missing, 100, (text) => hub.send('echo', text));
  const page = await open('tasks');
  const rows = page.getByRole('list', { name: 'Tasks' }).getByRole('listitem');
  await rows.nth(5).waitFor();
  await until('the list knows how long it is', async () => Number(await rows.first().getAttribute('aria-setsize')) >= TASKS);
  const result = await page.evaluate(async () => {
    const scroller = document.querySelector('[role=group][aria-label=Tasks]');
    const frame = () => new Promise(requestAnimationFrame);
    const gaps = [];
    let [most, last] = [0, await frame()];
    for (let top = 0; top < scroller.scrollHeight; top += scroller.clientHeight / 2) {
      scroller.scrollTop = top;
      const now = await frame();
      gaps.push(now - last);
      last = now;
      most = Math.max(most, document.querySelectorAll('[role=listitem]').length);
    }
    gaps.sort((a, b) => a - b);
    return { frames: gaps.length, most, medianMs: gaps[gaps.length >> 1], p99Ms: gaps[Math.floor(gaps.length * 0.99)], longestMs: gaps.at(-1) };
  });
  check(result.frames > 20 && result.most <= ROWS, result);
  await until('the last rows have their tasks', async () => {
    const row = rows.last();
    return (await row.getAttribute('aria-posinset')) === (await row.getAttribute('aria-setsize')) && (await row.getByRole('link').count()) === 1;
  });
  figures.load = { tasks: Math.max(TASKS, totalTasks), ...result };
  return `${figures.load.tasks} tasks, ${result.most} rows, median frame ${Math.round(result.medianMs)} ms, longest ${Math.round(result.longestMs)} ms`;
}
