// Stories about who may use the page: pairing, removal, and pages of other origins.

import { createServer, request } from 'node:http';
import { openLink, pair } from './browser.mjs';
import { check, until } from './hub.mjs';

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'hub/tasks/list', params: {} });

/** A browser without a key sees the command that pairs it, and nothing else. */
export async function unpaired({ hub, base, open, context }) {
  const secret = `secret ${Date.now()}`;
  await hub.send('echo', secret);
  const page = await open(undefined, await context());
  for (const path of ['/', '/ui/', '/ui/tasks', '/ui/tasks/1', '/ui/?view=history']) {
    await page.goto(base + path);
    await page.getByRole('heading', { name: 'This browser is not paired' }).waitFor();
    await page.getByText('a2a-hub web', { exact: true }).waitFor();
    if (path === '/') check(page.url() === `${base}/ui/`, page.url());
    check((await page.getByRole('navigation').count()) === 0, 'no navigation');
    check(!(await page.content()).includes(secret), 'no task is shown');
  }
  const status = await page.evaluate(async (body) => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch('/', { method: 'POST', headers, body })).status;
  }, LIST);
  check(status === 401 || status === 403, `an unpaired page reads tasks: ${status}`);
}

/** Both sides show one code; a yes pairs, a no and a used token do not. */
export async function pairing({ hub, base, open, context }) {
  const mine = await context();
  const page = await open(undefined, mine);
  const { token } = await hub.offer();
  await openLink(page, hub, token);
  const { code, name } = await hub.presented(token);
  await page.getByRole('heading', { name: 'Compare this code' }).waitFor();
  await page.getByText(code, { exact: true }).waitFor();
  check(/^[0-9A-F]{4}-[0-9A-F]{4}$/.test(code), code);
  check(page.url() === `${base}/ui/pair`, page.url());
  check(!(await page.content()).includes(token), 'the token is not in the page');
  const device = await hub.confirm(token, code, true);
  await page.waitForURL(`${base}/ui/`);
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  check(device.name === name, { device, name });
  await privateKeyStays(page);
  check((await mine.cookies()).length === 0, 'no cookies');
  await page.goto(`${base}/`);
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();

  const other = await open(undefined, await context());
  await openLink(other, hub, token);
  await other.getByRole('heading', { name: /cannot be used any more|Not paired|Pairing failed/ }).waitFor();
  await other.goto(`${base}/ui/`);
  await other.getByRole('heading', { name: 'This browser is not paired' }).waitFor();

  const refused = await hub.offer();
  await openLink(other, hub, refused.token);
  const pending = await hub.presented(refused.token);
  await other.getByText(pending.code, { exact: true }).waitFor();
  await hub.confirm(refused.token, pending.code, false);
  await other.getByRole('heading', { name: 'Not paired' }).waitFor();
  await other.getByText('a2a-hub web', { exact: true }).waitFor();
  await other.goto(`${base}/ui/`);
  await other.getByRole('heading', { name: 'This browser is not paired' }).waitFor();
  await hub.removeDevice(device.id);
}

/** The private key is in the browser's database, and can neither be read nor stolen. */
async function privateKeyStays(page) {
  const found = await page.evaluate(async () => {
    const result = (ask) => new Promise((done, fail) => {
      ask.onsuccess = () => done(ask.result);
      ask.onerror = () => fail(ask.error);
    });
    const keys = [];
    const visit = (value) => {
      if (value instanceof CryptoKey) keys.push(value);
      else if (value !== null && typeof value === 'object') Object.values(value).forEach(visit);
    };
    for (const { name } of await indexedDB.databases()) {
      const database = await result(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        visit(await result(database.transaction(store).objectStore(store).getAll()));
      }
      database.close();
    }
    const privates = keys.filter((key) => key.type === 'private');
    const leaks = await Promise.all(
      privates.flatMap((key) => ['jwk', 'pkcs8'].map((as) => crypto.subtle.exportKey(as, key).then(() => as, () => ''))),
    );
    return { extractable: privates.map((key) => key.extractable), leaks: leaks.join('') };
  });
  check(found.extractable.length === 1 && found.extractable[0] === false && found.leaks === '', found);
}

/** A removed browser loses the page at once. */
export async function removed({ hub, base, open, context, figures }) {
  const mine = await context();
  const device = await pair(mine, hub);
  const secret = `open ${Date.now()}`;
  await hub.ask('approval-gate', secret);
  const page = await open('', mine);
  await page.getByRole('list', { name: 'Open questions' }).getByText(secret).first().waitFor();
  await page.evaluate(() => { window.isSamePage = true; });
  const begin = Date.now();
  await hub.removeDevice(device.id);
  const ended = page.getByRole('heading', { name: /This browser (is not paired|was removed)/ });
  await ended.waitFor({ timeout: 3_000 });
  figures.removedMs = Date.now() - begin;
  await page.getByText('a2a-hub web', { exact: true }).waitFor();
  check(await page.evaluate(() => window.isSamePage === true), 'without a reload');
  check(!(await page.content()).includes(secret), 'nothing stays on the screen');
  await page.goto(`${base}/ui/tasks`);
  await page.getByRole('heading', { name: 'This browser is not paired' }).waitFor();
  await page.getByText('a2a-hub web', { exact: true }).waitFor();
  return `${figures.removedMs} ms`;
}

/** A paired browser that opens a pairing link stays the device that it is, while its key counts. */
export async function remembered({ hub, base, open, context, watch }) {
  const mine = await context();
  const device = await pair(mine, hub);
  const ids = async () => (await hub.devices()).map((it) => it.id).sort().join(' ');
  const before = await ids();
  const page = await open(undefined, mine);
  const { token } = await hub.offer();
  await openLink(page, hub, token);
  await page.waitForURL(`${base}/ui/`);
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  await page.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
  const sent = watch.requests.filter((it) => it.method === 'POST' && it.url === `${base}/ui/pair`);
  check(sent.length === 1, `${sent.length} requests to pair`);
  check((await ids()) === before, 'no device was added');
  check((await hub.call('hub/devices/pairing', { token })).state === 'paired-before', 'the offered pairing has ended');
  await page.close();

  // Without a page that could notice it.
  await hub.removeDevice(device.id);
  const again = await open(undefined, mine);
  const offered = await hub.offer();
  await openLink(again, hub, offered.token);
  const { code } = await hub.presented(offered.token);
  await again.getByText(code, { exact: true }).waitFor();
  const next = await hub.confirm(offered.token, code, true);
  await again.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  check(next.id !== device.id, 'it is another device');
  await hub.removeDevice(next.id);
}

/** A page of another port can neither show the page, nor read or change anything. */
export async function origins({ hub, base, open, context, watch }) {
  const marker = `forged ${Date.now()}`;
  const { token } = await hub.offer();
  const message = { messageId: marker, role: 'user', parts: [{ kind: 'text', text: marker }], metadata: { targetAgent: 'echo' } };
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>other</title>'));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    // The paired browser, because its rights must not reach other pages.
    const mine = await context();
    await pair(mine, hub);
    const page = await mine.newPage();
    const other = `http://127.0.0.1:${server.address().port}/`;
    await page.goto(other);
    await cannotFrame(page, base);
    const fetched = await page.evaluate(tryFetches, { base, token, call });
    check(fetched.every((it) => /^failed|opaque$/.test(it)), fetched);
    for (const [path, body] of [['/', call], ['/ui/pair', JSON.stringify({ token, name: marker })]]) {
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        await postForm(page, other, { action: base + path, enctype, body });
      }
    }
    const tasks = await hub.call('hub/tasks/list', { limit: 20 });
    check(!JSON.stringify(tasks).includes(marker), 'a page of another origin made a task');
    check((await hub.call('hub/devices/pairing', { token })).state === 'offered', 'it used a token');
    check((await status(base, 'rebound.example')) === 403, 'another name of the host is refused');
    check((await status(base, new URL(base).host)) === 200, 'the own name is served');
    watch.check();
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A frame of another origin's page shows nothing of the page: it is refused by two means. */
async function cannotFrame(page, base) {
  const arrived = page.waitForResponse(`${base}/ui/`);
  await page.evaluate((src) => {
    const frame = document.createElement('iframe');
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    frame.src = src;
    document.body.append(frame);
    return loaded;
  }, `${base}/ui/`);
  check((await arrived).status() === 403, `the frame is served: ${(await arrived).status()}`);
  const frame = page.frames().find((it) => it !== page.mainFrame());
  check((await frame.locator('#app, h1, script').count()) === 0, `the frame shows ${await frame.content()}`);
  const policy = (await fetch(`${base}/ui/`)).headers.get('content-security-policy');
  check(policy.includes("frame-ancestors 'none'"), policy);
}

/** Requests that a page of another origin may try; each must fail or be opaque. */
async function tryFetches({ base, token, call }) {
  const json = { 'content-type': 'application/json' };
  const pairing = JSON.stringify({ token, name: 'other' });
  const attempts = [
    [`${base}/`, {}],
    [`${base}/ui/`, {}],
    [`${base}/ui/`, { mode: 'no-cors' }],
    [`${base}/`, { method: 'POST', headers: json, body: call }],
    [`${base}/`, { method: 'POST', headers: json, body: call, credentials: 'include' }],
    [`${base}/`, { method: 'POST', body: call }],
    [`${base}/stream`, { method: 'POST', body: call }],
    [`${base}/ui/pair`, { method: 'POST', headers: json, body: pairing }],
    [`${base}/ui/pair`, { method: 'POST', body: pairing }],
  ];
  // The hub must not act on these two; their answers cannot be read in any case.
  for (const [url, body] of [[`${base}/`, call], [`${base}/ui/pair`, pairing]]) {
    await fetch(url, { method: 'POST', mode: 'no-cors', body }).catch(() => {});
  }
  const results = attempts.map(async ([url, options]) => {
    try {
      return `read ${options.method ?? 'GET'} ${url}: ${(await fetch(url, options)).type}`;
    } catch (error) {
      return `failed ${error.name}`;
    }
  });
  return Promise.all(results);
}

/** Posts a form from a page of another origin; the hub must refuse it. */
async function postForm(page, other, { action, enctype, body }) {
  await page.goto(other);
  const isPlain = enctype === 'text/plain';
  // As text/plain, the body is `name=value`, which makes one JSON text of these two.
  const [name, value] = isPlain ? [`${body.slice(0, -1)},"x":"`, '"}'] : ['body', body];
  const arrived = page.waitForResponse((it) => it.url() === action && it.request().method() === 'POST');
  const loaded = page.waitForEvent('framenavigated');
  await page.evaluate(({ action, enctype, name, value }) => {
    const form = Object.assign(document.createElement('form'), { method: 'POST', action, enctype });
    form.append(Object.assign(document.createElement('input'), { name, value }));
    document.body.append(form);
    form.submit();
  }, { action, enctype, name, value });
  const response = await arrived;
  check(response.status() >= 400, `${action} took a form as ${enctype}: ${response.status()}`);
  await loaded;
}

function status(base, host) {
  return new Promise((resolve, reject) => {
    request(`${base}/ui/`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject).end();
  });
}
