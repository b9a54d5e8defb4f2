// Story about the inbox by keyboard alone: allow, deny with a reason, later, several at once, and
// the history.

import { check, textOf, until } from './hub.mjs';

export const openRows = (page) => page.getByRole('list', { name: 'Open questions' }).getByRole('listitem');
const buttonOf = (row) => row.locator('[data-row], button').first();

/** The row of the question with this text. */
export const rowOf = (page, text) => openRows(page).filter({ hasText: text });

/** Selects a question by `j` and `k`. */
export async function choose(page, text) {
  await rowOf(page, text).waitFor();
  const read = () => page.evaluate((text) => {
    const rows = [...document.querySelectorAll('ul[aria-label="Open questions"] > li')];
    return {
      at: rows.findIndex((it) => it.querySelector('[aria-current=true]')),
      to: rows.findIndex((it) => it.textContent.includes(text)),
    };
  }, text);
  const isChosen = async () => (await buttonOf(rowOf(page, text)).getAttribute('aria-current')) === 'true';
  await until(`the question is chosen: ${text}`, async () => {
    if (await isChosen()) return true;
    const { at, to } = await read();
    await page.keyboard.press(at < 0 || to > at ? 'j' : 'k');
    return isChosen();
  });
  await page.getByRole('article').filter({ hasText: text }).first().waitFor();
}

/** Presses Tab until the element has the focus. */
async function tabTo(page, element) {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await element.evaluate((it) => it === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${element}`);
}

export async function keyboard({ hub, open, browser }) {
  const { device } = await browser.paired(hub);
  const run = Date.now().toString(36);
  const page = await open('tasks');
  await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('i');
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  await page.getByRole('status').filter({ hasText: 'Connected' }).waitFor();

  await allow(page, hub, `delete the branch ${run}`);
  await deny(page, hub, run);
  await answer(page, hub, run);
  await setAside(page, hub, `later ${run}`);
  await severalAtOnce(page, hub, run);
  await notices(page, hub, run);
  await history(page, hub, run, device);
  await shortcutsLeaveFields(page);
}

async function allow(page, hub, text) {
  const { task, question } = await hub.ask('approval-gate', text);
  await choose(page, text);
  const card = page.getByRole('article').filter({ hasText: text });
  await card.getByText('Asks for permission').waitFor();
  await card.getByText(text).first().waitFor();
  await page.keyboard.press('y');
  await rowOf(page, text).getByText(/Allowed by (you|device:)/).first().waitFor();
  check(textOf((await hub.reach(task, 'completed')).status.message) === 'Approved.', 'the agent goes on');
  const [past] = await hub.earlier([question]);
  check(past.answer === 'allow' && past.answeredBy.startsWith('device:'), past);
}

/** A task that failed is listed until it is read, here and by other clients of the hub. */
async function notices(page, hub, run) {
  const unread = async () => (await hub.call('hub/notices/list', {})).notices.filter((it) => it.title.startsWith('fail ') && it.title.includes(run));
  for (const name of ['first', 'second']) await hub.send('test-guests', `fail ${name} ${run}`);
  const list = page.getByRole('region', { name: 'Notices' });
  const of = (name) => list.getByRole('listitem').filter({ hasText: `fail ${name} ${run}` });
  await of('first').waitFor();
  await of('second').getByText('Failed').waitFor();
  await of('first').getByRole('button', { name: /Mark read/ }).click();
  await of('first').waitFor({ state: 'detached' });
  check((await unread()).length === 1, await unread());
  await list.getByRole('button', { name: 'Mark all read' }).click();
  await list.waitFor({ state: 'detached' });
  check((await unread()).length === 0, await unread());
}

/** The agent of `permit` repeats the answer, so that the reason is seen to arrive. */
async function deny(page, hub, run) {
  const reason = `use pnpm ${run}`;
  const { task, question } = await hub.ask('test-guests', `permit ${run}`);
  await choose(page, `permit ${run}`);
  await page.keyboard.press('r');
  await page.keyboard.type(reason);
  await page.keyboard.press('Control+Enter');
  await rowOf(page, `permit ${run}`).getByText(/Denied by (you|device:)/).first().waitFor();
  const told = textOf((await hub.reach(task, 'completed')).status.message);
  check(told.includes(reason) && !/^allow/.test(told), told);
  check((await hub.earlier([question]))[0].answer.includes(reason), 'the history has the reason');
  const other = `plain no ${run}`;
  const plain = await hub.ask('approval-gate', other);
  await choose(page, other);
  await page.keyboard.press('n');
  await hub.reach(plain.task, 'rejected');
  await rowOf(page, other).getByText(/Denied by (you|device:)/).first().waitFor();
}

/** A question for a text is never answered by a single key. */
async function answer(page, hub, run) {
  const { task } = await hub.ask('test-guests', `ask ${run}`);
  await choose(page, `ask ${run}`);
  await page.keyboard.press('y');
  await page.keyboard.type(`green y n ${run}`);
  check((await hub.task(task)).status.state === 'input-required', 'keys alone answer no question');
  await page.keyboard.press('Control+Enter');
  check(textOf((await hub.reach(task, 'completed')).status.message) === `green y n ${run}`, 'the text arrives');
}

async function setAside(page, hub, text) {
  const { question, task } = await hub.ask('approval-gate', text);
  await choose(page, text);
  await page.keyboard.press('l');
  await page.keyboard.press('Enter');
  await rowOf(page, text).getByText('set aside').waitFor();
  const elsewhere = `in a terminal, ${text}`;
  const other = await hub.ask('approval-gate', elsewhere);
  await rowOf(page, elsewhere).waitFor();
  await hub.call('hub/questions/later', { id: other.question, forMs: 3_600_000 });
  await rowOf(page, elsewhere).getByText('set aside').waitFor();
  await hub.call('tasks/cancel', { id: other.task });
  const { questions } = await hub.call('hub/questions/list');
  const left = Date.parse(questions.find((it) => it.id === question).expiresAt) - Date.now();
  check(left > 50 * 60_000 && left <= 60 * 60_000, `an hour is left: ${left}`);
  check(questions.find((it) => it.id === question).setAside === true, 'the hub knows it');
  await hub.call('tasks/cancel', { id: task });
}

async function severalAtOnce(page, hub, run) {
  const texts = ['first', 'second', 'third'].map((it) => `${it} of three ${run}`);
  const left = `not marked ${run}`;
  const asked = await Promise.all(texts.map((text) => hub.ask('approval-gate', text)));
  const other = await hub.ask('approval-gate', left);
  const input = `no permission ${run}`;
  const asks = await hub.ask('test-guests', `ask ${input}`);
  for (const text of [...texts, input]) {
    await choose(page, text);
    await page.keyboard.press('x');
  }
  await page.getByRole('group', { name: 'Marked questions' }).getByText('4 marked').waitFor();
  await page.keyboard.press('Shift+Y');
  const dialog = page.getByRole('dialog', { name: 'Allow 3 requests?' });
  for (const text of texts) await dialog.getByText(text).waitFor();
  await dialog.getByText('4 questions are marked. 1 of them is no permission and stays open.').waitFor();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await Promise.all(asked.map(({ task }) => hub.reach(task, 'completed')));
  for (const text of texts) await rowOf(page, text).getByText(/Allowed by (you|device:)/).first().waitFor();
  check((await hub.task(other.task)).status.state === 'input-required', 'a question that is not marked stays open');
  check((await hub.task(asks.task)).status.state === 'input-required', 'a marked question that is no permission stays open');
  await hub.call('tasks/cancel', { id: other.task });
  await hub.call('tasks/cancel', { id: asks.task });
}

async function history(page, hub, run, device) {
  const inTerminal = await hub.ask('approval-gate', `in the terminal ${run}`);
  await choose(page, `in the terminal ${run}`);
  await hub.call('hub/questions/answer', { ids: [inTerminal.question], answer: `no, not ${run}` });
  await rowOf(page, `in the terminal ${run}`).getByText(new RegExp(`Denied by .+: not ${run}`)).waitFor();
  // The answered one is still selected: keys must answer neither it nor the next one.
  await page.keyboard.press('y');
  await tabTo(page, page.getByRole('link', { name: 'History' }));
  await page.keyboard.press('Enter');
  const list = page.getByRole('list', { name: 'Earlier questions' });
  const entry = (text) => list.getByRole('listitem').filter({ hasText: `${text} ${run}` });
  const names = [device.id, device.name];
  const allowed = await entry('delete the branch').innerText();
  check(/Allowed by device:/.test(allowed) && names.some((it) => allowed.includes(it)), allowed);
  await entry('in the terminal').getByText(/Denied by .+: not/).waitFor();
  check(!(await entry('in the terminal').innerText()).includes('device:'), 'the terminal answered');
  check((await entry('of three').count()) === 3, 'all three are in the history');
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
}

async function shortcutsLeaveFields(page) {
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  check(!page.url().endsWith('/tasks'), 'keys do nothing behind a dialog');
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  const text = page.getByRole('textbox', { name: 'Message' });
  await text.waitFor();
  await text.fill('');
  await text.press('g');
  await text.press('t');
  check((await text.inputValue()) === 'gt' && page.url().endsWith('/send'), 'a field takes the keys itself');
  await text.fill('');
}
