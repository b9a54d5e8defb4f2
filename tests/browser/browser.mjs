// The browser of the stories: Chromium, contexts that are paired with the hub, and a watch over
// everything that a page must never do.

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const TIMEOUT_MS = 8_000;

/** Reports violations of the page's policy, which Chromium does not always print. */
function reportViolations() {
  addEventListener('securitypolicyviolation', (event) => {
    console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
  });
}

/** What the pages of a story did that they must never do. */
export class Watch {
  troubles = [];
  requests = [];

  constructor(origin) {
    this.origin = origin;
  }

  follow(page) {
    const report = (text) => this.troubles.push(text.slice(0, 300));
    page.on('dialog', (dialog) => {
      report(`dialog: ${dialog.message()}`);
      void dialog.dismiss().catch(() => {});
    });
    page.on('pageerror', (error) => report(`error in the page: ${error.stack ?? error}`));
    page.on('console', (message) => {
      const text = message.text();
      if (/policy violation|Content Security Policy|Trusted ?(Type|HTML|Script)/i.test(text)) report(text);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      this.requests.push({ page, url: url.href, method: request.method(), body: request.postData() ?? '' });
      const isOwn = url.origin === this.origin || ['data:', 'about:'].includes(url.protocol);
      // Images and downloads of agents are blobs of the page's origin.
      if (!isOwn && !url.href.startsWith(`blob:${this.origin}/`)) report(`request to ${url.href}`);
    });
    page.on('popup', (popup) => report(`window: ${popup.url()}`));
    page.on('download', (download) => report(`download: ${download.suggestedFilename()}`));
  }

  /** Fails if a page did anything that it must not do. */
  check() {
    const [first] = this.troubles;
    if (first) throw new Error(`${this.troubles.length} troubles in pages, first: ${first}`);
  }
}

/** Path of the first of these programs that is installed. */
function find(names) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = names.flatMap((name) => folders.map((folder) => join(folder, name))).find((it) => existsSync(it));
  if (!found) throw new Error(`no ${names.join(' or ')} is installed; CHROMIUM may say where one is`);
  return found;
}

/** Starts Chromium with a profile below the folder for results. */
export async function launch({ modules, out, base }) {
  const require = createRequire(join(modules, 'stories.js'));
  const { chromium } = require('playwright-core');
  const profile = join(out, 'profile');
  rmSync(profile, { recursive: true, force: true });
  mkdirSync(profile, { recursive: true });
  // Playwright makes the folder for the user's data there.
  process.env.TMPDIR = profile;
  const executablePath = process.env.CHROMIUM ?? find(['chromium', 'chromium-browser', 'google-chrome']);
  const chrome = await chromium.launch({ executablePath, args: ARGUMENTS, headless: true });
  const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  return new Browser({ chrome, axe, base, profile });
}

export class Browser {
  #paired;

  constructor(of) {
    Object.assign(this, of);
    this.origin = new URL(this.base).origin;
  }

  /** Opens a context that shares nothing with others: a browser of somebody else. */
  async context() {
    const context = await this.chrome.newContext({ viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(TIMEOUT_MS);
    await context.addInitScript(reportViolations);
    return context;
  }

  /** Returns the context of the paired browser that most stories use. */
  async paired(hub) {
    this.#paired ??= (async () => {
      const context = await this.context();
      context.device = await pair(context, hub);
      return context;
    })();
    this.#paired.catch(() => { this.#paired = undefined; });
    return this.#paired;
  }

  async close() {
    await this.chrome.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}

/** Opens a pairing link in a page. */
export async function openLink(page, hub, token) {
  await page.goto(`${hub.base}/ui/pair#${token}`);
}

/** Pairs a context with the hub, and returns the device. */
export async function pair(context, hub) {
  const page = await context.newPage();
  const { token } = await hub.offer();
  await openLink(page, hub, token);
  const { code } = await hub.presented(token);
  await page.getByText(code, { exact: true }).waitFor();
  const device = await hub.confirm(token, code, true);
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  await page.close();
  return device;
}

/**
 * Waits until the page has laid out what it has, and for two frames. A tab in the background draws
 * once a second, so it waits for no frame longer than some milliseconds.
 */
export function drawn(page) {
  return page.evaluate(() => {
    void document.body.offsetHeight;
    const frames = new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const pause = new Promise((resolve) => setTimeout(resolve, 60));
    return Promise.race([frames, pause]).then(() => void document.body.offsetHeight);
  });
}

/** Runs `work` on all items, a few at a time. */
export async function each(items, width, work) {
  const queue = [...items.entries()];
  const results = [];
  const worker = async (lane) => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      results[next[0]] = await work(next[1], lane);
    }
  };
  await Promise.all(Array.from({ length: width }, (_, lane) => worker(lane)));
  return results;
}
