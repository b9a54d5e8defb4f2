// Story about hostile texts of agents and clients: nothing of them runs, loads or leads astray, and
// the page stays responsive.

import { createServer } from 'node:http';
import { Watch, drawn, each } from './browser.mjs';
import { FAR } from './far.mjs';
import { check, until } from './hub.mjs';
import { HEAVY, LEAKS, PARTS, TEXTS } from './payloads.mjs';

const LANES = 6;
/** Longest time in which a page answers, in milliseconds. */
const RESPONSIVE_MS = 2_000;
const TALL = { width: 1280, height: 6_000 };

/** Returns what is wrong with the document of a page. */
function inspect(base) {
  const wrong = [];
  const origin = new URL(base).origin;
  const show = (element) => element.outerHTML.slice(0, 120);
  const contents = [...document.querySelectorAll('article')].filter((it) =>
    /^(Message of |Result: |Your message)/.test(it.getAttribute('aria-label') ?? ''),
  );
  for (const link of document.querySelectorAll('a[href], area[href]')) {
    const url = new URL(link.href);
    const isOwn = url.origin === origin && url.pathname.startsWith('/ui/') && url.protocol.startsWith('http');
    const isSave = url.protocol === 'blob:' && link.hasAttribute('download');
    const isOutside = ['http:', 'https:', 'mailto:'].includes(url.protocol) && link.relList.contains('noopener') && url.username === '';
    const isContent = contents.some((it) => it.contains(link));
    if (!isSave && !isOutside && (isContent || !isOwn)) wrong.push(`link: ${show(link)}`);
  }
  const FORBIDDEN = 'script, iframe, frame, object, embed, base, meta, link, style, template, noscript, math, video, audio, marquee, area';
  for (const element of document.body.querySelectorAll(FORBIDDEN)) {
    // The page's own notice for browsers without scripts.
    if (element.matches('body > noscript')) continue;
    wrong.push(`element: ${show(element)}`);
  }
  for (const element of document.body.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name) || /^srcdoc$/i.test(name)) wrong.push(`attribute: ${show(element)}`);
      const isAddress = /^(src|srcset|action|formaction|background|poster|data|xlink:href)$/i.test(name);
      if (isAddress && !value.startsWith('blob:')) wrong.push(`address: ${show(element)}`);
      if (name === 'download' && /[/\\\u202e\r\n]|^\./.test(value)) wrong.push(`name of a download: ${JSON.stringify(value)}`);
    }
  }
  const CONTROLS = 'form, input:not(:disabled), button[type=submit], select, textarea, dialog, svg, [name], h1';
  for (const content of contents) {
    for (const element of content.querySelectorAll(CONTROLS)) {
      wrong.push(`control in the content: ${show(element)}`);
    }
    if (/[\u202a-\u202e\u2066-\u2069\u200b\u001b]/.test(content.innerText)) wrong.push('a hidden character is shown as it is');
  }
  const list = window.__hacked;
  if (list !== undefined) wrong.push(`__hacked is ${list}`);
  if ({}.polluted !== undefined || Object.keys(Object.prototype).length > 0) wrong.push('Object.prototype has changed');
  if (typeof document.getElementById !== 'function' || typeof window.location.href !== 'string') wrong.push('the document is clobbered');
  if (location.origin !== origin) wrong.push(`the page went to ${location.href}`);
  return wrong;
}

/** Looks at a page, and fails if anything is wrong. */
async function verify(page, base, what) {
  const wrong = await page.evaluate(inspect, base);
  check(wrong.length === 0, `${what}: ${wrong.length} wrong, ${wrong.slice(0, 3).join(' | ')}`);
}

/**
 * Opens a task without loading the page again, and asks the page again and again meanwhile. Returns
 * the longest time of an answer, with the time to draw the page if it `draws`.
 */
async function visit(page, path, draws = true) {
  const begin = performance.now();
  await page.evaluate((path) => {
    history.pushState(null, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
  let worst = performance.now() - begin;
  const answers = async (ask) => {
    const begin = performance.now();
    const answer = await ask();
    worst = Math.max(worst, performance.now() - begin);
    return answer;
  };
  await until(`shown: ${path}`, () => answers(() => page.evaluate(isShown, path)), 20_000);
  if (draws) await answers(() => drawn(page));
  return worst;
}

/** True if the page shows the task or the list of the address. */
function isShown(path) {
  if (!/\/tasks\/./.test(path)) return document.querySelectorAll('[role=listitem] a').length > 5;
  const id = path.split('/').at(-1);
  const isTask = document.querySelector(`nav[aria-label="Views of the task"] a[href*="${id}"]`) !== null;
  return isTask && document.querySelector('article[aria-label], .empty') !== null;
}

export async function texts(stage) {
  const { hub, base, open, figures, watch } = stage;
  await watchSees(stage);
  const refused = [];
  const made = [];
  const send = async (name, agent, content) => {
    const task = await hub.send(agent, content).catch((error) => {
      refused.push(`${name}: ${error.message.slice(0, 60)}`);
    });
    if (task) made.push({ name, id: task.id });
  };
  const lines = Object.entries(TEXTS);
  await each(lines, 8, ([name, text]) => send(name, 'echo', text));
  await each(Object.entries(PARTS), 8, ([name, parts]) => send(name, 'echo', [{ kind: 'text', text: `case ${name}` }, ...parts]));
  await each(LEAKS, 4, (name) => send(`leak ${name}`, 'test-guests', `leak ${TEXTS[name]}`));
  await each(LEAKS, 4, (name) => send(`form ${name}`, 'test-guests', `test_elicitation ${TEXTS[name]}`));
  check(made.length >= 85, `${made.length} tasks, refused: ${refused.join('; ')}`);

  figures.hostile = { tasks: made.length, refused };

  const pages = await Promise.all(Array.from({ length: LANES }, () => open('')));
  await Promise.all(pages.map((page) => page.getByRole('heading', { level: 1 }).waitFor()));
  await each(made, LANES, async ({ name, id }, lane) => {
    const page = pages[lane];
    await visit(page, `/ui/tasks/${id}`, false);
    await page.evaluate(() => { for (const it of document.querySelectorAll('main details')) it.open = true; });
    await drawn(page);
    await verify(page, base, `task ${name}`);
  });
  watch.check();
  await lists(stage, pages, lines);
  watch.check();
  const slowest = await heavy(stage, pages[0]);
  return `${made.length} tasks; slowest answer ${slowest} ms; refused by the hub: ${refused.join('; ') || 'none'}`;
}

/** The same texts in the list of tasks, in the inbox and in its history. */
async function lists({ hub, base }, [page], lines) {
  await page.setViewportSize(TALL);
  for (const view of ['tasks', 'tasks?agent=echo', `tasks?q=${encodeURIComponent('<script>')}`, 'agents']) {
    await page.goto(`${base}/ui/${view}`);
    await page.getByRole('listitem').nth(1).waitFor();
    await verify(page, base, view);
  }
  const asked = await each(lines, 8, ([name, text]) =>
    hub.ask('approval-gate', `question ${name}\n\n${text}`).catch(() => undefined),
  );
  const open = asked.filter((it) => it !== undefined);
  check(open.length >= 55, `${open.length} questions`);
  await page.goto(`${base}/ui/`);
  const rows = page.getByRole('list', { name: 'Open questions' }).getByRole('listitem');
  await until('all questions are listed', async () => (await rows.count()) >= open.length);
  const count = await rows.count();
  for (let at = 0; at < count; at += 1) {
    await page.keyboard.press('j');
    await verify(page, base, `question ${at}`);
  }
  // Marked ones are shown in a dialog.
  for (let at = 0; at < 20; at += 1) await page.keyboard.press('x').then(() => page.keyboard.press('k'));
  await page.keyboard.press('Shift+N');
  await page.getByRole('dialog').waitFor();
  await verify(page, base, 'dialog');
  await page.keyboard.press('Escape');
  const ids = open.map((it) => it.question);
  await hub.call('hub/questions/answer', { ids, answer: `no, ${TEXTS.imageError} ${TEXTS.linkScript}` });
  await until('the answered questions leave', async () => (await page.getByText('Denied by').count()) > 0);
  await verify(page, base, 'closed questions');
  await page.goto(`${base}/ui/?view=history`);
  await page.getByRole('list', { name: 'Earlier questions' }).getByRole('listitem').nth(50).waitFor();
  await verify(page, base, 'history');
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Large and deep texts: the page answers within two seconds, and lists show them as well. */
async function heavy({ hub, base, figures }, page) {
  await page.bringToFront();
  const answers = {};
  for (const [name, text] of Object.entries(HEAVY)) {
    const { id } = await hub.send('echo', text);
    answers[name] = Math.round(await visit(page, `/ui/tasks/${id}`));
    await verify(page, base, `heavy ${name}`);
  }
  answers['list of tasks'] = Math.round(await visit(page, '/ui/tasks'));
  await verify(page, base, 'tasks with heavy texts');
  figures.answersMs = answers;
  const slow = Object.entries(answers).filter(([, ms]) => ms >= RESPONSIVE_MS);
  check(slow.length === 0, `the page is blocked: ${slow.map(([name, ms]) => `${ms} ms by ${name}`).join(', ')}`);
  return Math.max(...Object.values(answers));
}

/** The watch notices each kind of trouble in a page that lets hostile texts run. */
async function watchSees({ context }) {
  const server = createServer((request, response) => {
    if (request.url === '/policy') response.setHeader('content-security-policy', "script-src 'none'");
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><body>${TEXTS.script}<article aria-label="Message of x">${TEXTS.imageFar}<a href="javascript:1">x</a></article>`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${server.address().port}`;
    const watch = new Watch(url);
    const page = await (await context()).newPage();
    watch.follow(page);
    await page.goto(`${url}/`);
    const wrong = await page.evaluate(inspect, url);
    for (const what of ['link: ', 'element: <script', 'address: <img', '__hacked is 1']) {
      check(wrong.some((it) => it.startsWith(what)), { what, wrong });
    }
    await page.goto(`${url}/policy`);
    const sees = (what) => watch.troubles.some((it) => it.includes(what));
    await until('the watch sees all', () => sees('dialog: 1') && sees(`request to ${FAR}`) && sees('policy violation'));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
