// End-to-end stories of the web page with a real hub and Chromium. Prints one JSON line per story,
// and exits with 0 if all are well:
//
//   stories.mjs --hub http://127.0.0.1:PORT --socket /path/hub.sock --modules DIR --out DIR
//               [--only NAME] [--rounds N] [--screens]
//
// DIR of --modules has node_modules with playwright-core and axe-core. The hub needs the plug-ins
// approval-gate and test-guests. --only takes a story's name or several with commas. --screens also
// takes screenshots of every screen, in both themes and three widths.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import * as access from './access.mjs';
import { Watch, launch } from './browser.mjs';
import * as hostile from './hostile.mjs';
import { Hub } from './hub.mjs';
import * as inbox from './inbox.mjs';
import * as quality from './quality.mjs';
import * as races from './races.mjs';
import * as tasks from './tasks.mjs';

/** Time limit of a story, in milliseconds, and more of it for each round of races. */
const WITHIN_MS = 60_000;
const ROUND_MS = 1_500;

const STORIES = {
  unpaired: access.unpaired,
  pairing: access.pairing,
  inbox: inbox.keyboard,
  races: races.races,
  tasks: tasks.list,
  task: tasks.task,
  send: tasks.send,
  connection: tasks.connection,
  hostile: hostile.texts,
  origins: access.origins,
  removed: access.removed,
  remembered: access.remembered,
  accessible: quality.accessible,
  tabs: quality.tabs,
  'first-view': quality.firstView,
  load: quality.load,
};

const { values } = parseArgs({
  options: {
    hub: { type: 'string' },
    socket: { type: 'string' },
    modules: { type: 'string' },
    out: { type: 'string' },
    only: { type: 'string' },
    rounds: { type: 'string', default: '20' },
    screens: { type: 'boolean', default: false },
  },
});
for (const name of ['hub', 'socket', 'modules', 'out']) {
  if (!values[name]) throw new Error(`--${name} is missing`);
}
const only = values.only?.split(',');
for (const name of only ?? []) {
  if (!(name in STORIES)) throw new Error(`no story is called ${name}; there are: ${Object.keys(STORIES).join(', ')}`);
}

const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const base = values.hub.replace(/\/+$/, '');
const figures = { stories: {} };
const hub = await Hub.open(values.socket, base);
const browser = await launch({ modules: resolve(values.modules), out, base });

/** Runs a story with its own pages, which are closed after it. */
async function run(name, story) {
  const watch = new Watch(browser.origin);
  const opened = [];
  const follow = (page) => {
    opened.push(page);
    watch.follow(page);
    return page;
  };
  const stage = {
    hub,
    browser,
    base,
    out,
    figures,
    watch,
    rounds: Number(values.rounds),
    screens: values.screens,
    /** Opens a page below `/ui/` in the paired browser. */
    async open(path, context) {
      const page = follow(await (context ?? (await browser.paired(hub))).newPage());
      // A tab in the background draws once a second.
      await page.bringToFront();
      if (path !== undefined) await page.goto(`${base}/ui/${path}`);
      return page;
    },
    /** Opens a context that is closed after the story. */
    async context() {
      const context = await browser.context();
      opened.push(context);
      return context;
    },
  };
  rmSync(join(out, `failed-${name}.png`), { force: true });
  const begin = Date.now();
  const line = { step: name, ok: true, detail: '' };
  const abort = new AbortController();
  try {
    const within = WITHIN_MS + ROUND_MS * Number(values.rounds);
    const late = sleep(within, undefined, { signal: abort.signal }).then(() => {
      throw new Error(`not done after ${within} ms`);
    });
    late.catch(() => {});
    line.detail = (await Promise.race([story(stage), late])) ?? '';
    watch.check();
  } catch (error) {
    const troubles = watch.troubles.slice(0, 5).map((it) => `\nin a page: ${it}`).join('');
    Object.assign(line, { ok: false, detail: `${error?.stack ?? error}${troubles}` });
    await picture(opened, join(out, `failed-${name}.png`));
  }
  abort.abort();
  await Promise.allSettled(opened.reverse().map((it) => it.close()));
  await hub.tidy();
  figures.stories[name] = { ms: Date.now() - begin, ok: line.ok };
  console.log(JSON.stringify(line));
  return line.ok;
}

/** Takes a picture of the latest page of a failed story. */
async function picture(opened, path) {
  const page = opened.filter((it) => 'screenshot' in it && !it.isClosed()).at(-1);
  await page?.screenshot({ path, timeout: 3_000 }).catch(() => {});
}

let isWell = true;
try {
  for (const [name, story] of Object.entries(STORIES)) {
    if (only && !only.includes(name)) continue;
    isWell = (await run(name, story)) && isWell;
  }
} finally {
  await browser.close();
  await hub.close();
  writeFileSync(join(out, 'figures.json'), `${JSON.stringify(figures, null, 2)}\n`);
}
process.exit(isWell ? 0 : 1);
