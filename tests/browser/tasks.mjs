// Stories about tasks: the list, one task, sending, and a connection that is lost.

import { pair } from './browser.mjs';
import { check, textOf, until } from './hub.mjs';

const FULL = `# Plan of the release

Some **bold** words, \`code\`, and a [link](https://example.com/docs).

## Steps

1. build
2. test

- [x] done
- [ ] open

| name | size |
| --- | ---: |
| page | 80 |

\`\`\`rust
fn main() { println!("<b>"); }
\`\`\`

> quoted`;

const stateOf = (page, state) => page.getByRole('main').getByText(state, { exact: true }).first();

/** Filters are in the address and survive a reload; a task opens by keyboard. */
export async function list({ hub, open }) {
  const run = Date.now().toString(36);
  const done = await hub.send('echo', `completed one ${run}`);
  await hub.send('echo', `completed other ${run}`);
  const failed = await hub.send('test-guests', `fail ${run}`);
  await hub.ask('approval-gate', `waiting ${run}`);
  const page = await open('tasks');
  const rows = page.getByRole('list', { name: 'Tasks' }).getByRole('listitem');
  const row = (text) => rows.filter({ hasText: `${text} ${run}` });
  const choose = (name, value) => page.getByRole('combobox', { name }).selectOption(value);
  await row('completed one').waitFor();
  await row('waiting').getByText('Needs input').waitFor();

  await choose('State', { label: 'Failed' });
  await row('fail').waitFor();
  await row('completed one').waitFor({ state: 'detached' });
  check(new URL(page.url()).search.includes('state=failed'), page.url());
  await page.reload();
  await row('fail').waitFor();
  check((await page.getByRole('combobox', { name: 'State' }).inputValue()) === 'failed', 'the filter is shown after a reload');
  check((await row('completed one').count()) === 0, 'the filter holds after a reload');
  await choose('State', '');
  await choose('Agent', 'approval-gate');
  await row('waiting').waitFor();
  await row('fail').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Clear' }).click();
  check(new URL(page.url()).search === '', page.url());

  await page.keyboard.press('/');
  await page.keyboard.type(`OTHER ${run}`);
  await row('completed other').waitFor();
  await row('completed one').waitFor({ state: 'detached' });
  await until('the search is in the address', () => page.url().includes(run));
  await page.reload();
  await row('completed other').waitFor();
  check((await row('completed one').count()) === 0, 'the search holds after a reload');
  await page.getByRole('searchbox').fill(`no such words ${run}`);
  await page.getByText('No task matches.').waitFor();
  await page.getByRole('searchbox').fill(failed.id);
  await row('fail').waitFor();
  await page.getByRole('searchbox').fill(`completed ${run}`);
  await row('completed one').waitFor();
  await row('completed other').waitFor();
  await page.keyboard.press('Escape');
  const hasFocus = (text) => row(text).getByRole('link').evaluate((it) => it === document.activeElement);
  await page.keyboard.press('j');
  await until('the first row has the focus', () => hasFocus('completed other'));
  await page.keyboard.press('j');
  await until('the second row has the focus', () => hasFocus('completed one'));
  await page.keyboard.press('k');
  // As fast as the browser takes them.
  await Promise.all(['j', 'Enter'].map((key) => page.keyboard.press(key)));
  await page.getByRole('heading', { level: 1, name: `completed one ${run}` }).waitFor();
  check(page.url().endsWith(`/ui/tasks/${done.id}`), page.url());
  await page.goBack();
  await row('completed one').waitFor();
}

/** Markdown, growth, a follow-up, cancelling, raw JSON and the timeline of tasks. */
export async function task({ hub, open }) {
  const run = Date.now().toString(36);
  const full = await hub.send('echo', `${FULL}\n\n${run}`);
  const page = await open(`tasks/${full.id}`);
  const answer = page.getByRole('article', { name: 'Message of echo' });
  const part = (role, name) => answer.getByRole(role, { name }).waitFor();
  await part('heading', 'Plan of the release');
  await part('heading', 'Steps');
  await answer.getByRole('listitem').filter({ hasText: 'build' }).waitFor();
  await part('columnheader', 'size');
  await part('cell', '80');
  await answer.getByRole('group', { name: /Code/ }).getByText('fn main() { println!("<b>"); }').waitFor();
  check((await answer.getByRole('checkbox', { checked: true }).count()) === 1, 'one box is checked');
  check((await answer.locator('strong').innerText()) === 'bold', 'bold words');
  check((await answer.locator('blockquote').innerText()).trim().startsWith('quoted'), 'a quote');
  check((await answer.getByRole('link', { name: 'link' }).getAttribute('href')) === 'https://example.com/docs', 'the link');

  await page.getByRole('link', { name: 'JSON' }).click();
  const json = await page.getByRole('group', { name: 'The task as JSON' }).innerText();
  check(JSON.parse(json).id === full.id, 'the JSON is the task');
  await page.getByRole('link', { name: 'Timeline' }).click();
  await page.getByRole('main').getByRole('listitem').filter({ hasText: 'Completed' }).waitFor();
  await page.reload();
  await page.getByRole('main').getByRole('listitem').filter({ hasText: 'Completed' }).waitFor();
  await page.getByRole('link', { name: 'Conversation', exact: true }).click();

  const more = page.getByRole('textbox', { name: /Say more/ });
  await more.fill(`follow-up ${run}`);
  await more.press('Control+Enter');
  await page.waitForURL((url) => !url.href.includes(full.id));
  await page.getByRole('article', { name: 'Message of echo' }).getByText(`follow-up ${run}`).waitFor();
  await page.getByRole('navigation', { name: 'Tasks of this conversation' }).getByRole('link').nth(1).waitFor();
  const [latest] = await hub.call('hub/tasks/list', { contextId: full.contextId, limit: 5 });
  check(latest.id !== full.id && page.url().includes(latest.id), 'the follow-up is in the conversation');

  await grows(page, hub);
  await cancels(page, hub, run);
  await asks(page, hub, run);
}

async function grows(page, hub) {
  const { id } = await hub.send('test-guests', 'tick 25 60', { blocking: false });
  await page.goto(`${hub.base}/ui/tasks/${id}`);
  const artifact = page.getByRole('article', { name: /^Result:/ });
  await artifact.waitFor();
  const lengths = new Set();
  await until('the answer grows in the page', async () => {
    if (await stateOf(page, 'Working').isVisible()) lengths.add((await artifact.innerText()).length);
    return lengths.size >= 3;
  });
  await stateOf(page, 'Completed').waitFor();
  await artifact.getByText(/\b24\s+25\b/).waitFor();
}

async function cancels(page, hub, run) {
  const { task } = await hub.ask('test-guests', `ask to be canceled ${run}`);
  await page.goto(`${hub.base}/ui/tasks/${task}`);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel this task?' });
  await dialog.getByRole('button', { name: 'Let it go on' }).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  check((await hub.task(task)).status.state === 'input-required', 'Escape cancels nothing');
  await page.keyboard.press('c');
  await dialog.getByRole('button', { name: 'Cancel the task' }).click();
  await stateOf(page, 'Canceled').waitFor();
  check((await hub.task(task)).status.state === 'canceled', 'the hub has canceled it');
}

async function asks(page, hub, run) {
  const { task } = await hub.ask('test-guests', `ask in the task ${run}`);
  await page.goto(`${hub.base}/ui/tasks/${task}`);
  const field = page.getByRole('textbox', { name: 'Your answer' });
  await field.fill(`blue ${run}`);
  await page.reload();
  check((await field.inputValue()) === `blue ${run}`, 'the draft of the answer survives a reload');
  await field.press('Control+Enter');
  await stateOf(page, 'Completed').waitFor();
  check(textOf((await hub.task(task)).status.message) === `blue ${run}`, 'the answer arrives');
}

/** A draft survives a reload; Ctrl+Enter sends it and opens the task. */
export async function send({ hub, open }) {
  const text = `hello from **the page** ${Date.now()}`;
  const page = await open('send');
  await page.getByRole('radio', { name: /echo/ }).first().check();
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill(text);
  await page.reload();
  check((await field.inputValue()) === text, 'the draft survives a reload');
  await page.getByRole('radio', { name: /echo/, checked: true }).waitFor();
  await field.press('Control+Enter');
  await page.waitForURL(/\/ui\/tasks\/[0-9a-f-]{36}$/);
  await page.getByRole('article', { name: 'Message of echo' }).getByText('hello from').waitFor();
  const task = await hub.task(page.url().split('/').at(-1));
  check(textOf(task.history[0]) === text, task.history);
  await page.goto(`${hub.base}/ui/send`);
  check((await field.inputValue()) === '', 'a sent draft is gone');
}

/** Without the network, the page says so, keeps what is typed, and goes on afterwards. */
export async function connection({ hub, open, context, figures }) {
  const mine = await context();
  await pair(mine, hub);
  const page = await open('send', mine);
  const text = `typed before ${Date.now()}`;
  const field = page.getByRole('textbox', { name: 'Message' });
  const says = (words) => page.getByRole('status').filter({ hasText: words }).waitFor({ timeout: 15_000 });
  await says('Connected');
  await page.getByRole('radio', { name: /echo/ }).first().check();
  await field.fill(text);
  await mine.setOffline(true);
  await field.press('Control+Enter');
  await says('The hub cannot be reached');
  check((await field.inputValue()) === text, 'the text stays in the field');
  await field.press('End');
  await field.pressSequentially(' and offline');
  await mine.setOffline(false);
  const begin = Date.now();
  await says('Connected');
  figures.reconnectedMs = Date.now() - begin;
  check((await field.inputValue()) === `${text} and offline`, 'what was typed offline stays');
  const question = `asked after the return ${Date.now()}`;
  await hub.ask('approval-gate', question);
  await page.getByRole('link', { name: /^Inbox/ }).click();
  await page.getByRole('list', { name: 'Open questions' }).getByText(question).first().waitFor({ timeout: 15_000 });
  await page.getByRole('link', { name: 'Send', exact: true }).click();
  await field.press('Control+Enter');
  await page.waitForURL(/\/ui\/tasks\//);
  const sent = (await hub.call('hub/tasks/list', { limit: 20 })).filter((it) => textOf(it.history[0]).startsWith(text));
  check(sent.length === 1, `the message was sent ${sent.length} times`);
}
