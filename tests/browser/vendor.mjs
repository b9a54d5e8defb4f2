// Story of a vendor's program: its request for permission is shown in the inbox as the command that
// would run, a key allows it, and the task ends. Makes the pictures of the inbox and of the task.
//
//   vendor.mjs --hub URL --socket PATH --modules DIR --out DIR --agent NAME --command TEXT

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Watch, launch } from './browser.mjs';
import { Hub, check, until } from './hub.mjs';

const options = Object.fromEntries(
  ['hub', 'socket', 'modules', 'out', 'agent', 'command'].map((name) => [name, { type: 'string' }]),
);
const { values } = parseArgs({ options });
const out = resolve(values.out, values.agent);
mkdirSync(out, { recursive: true });
const hub = await Hub.open(values.socket, values.hub);
const browser = await launch({ modules: resolve(values.modules), out, base: values.hub });

async function pictures(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(out, `${name}-${colorScheme}.png`) });
  }
}

try {
  const watch = new Watch(browser.origin);
  const context = await browser.paired(hub);
  const page = await context.newPage();
  await page.setViewportSize({ width: 1024, height: 640 });
  watch.follow(page);
  await page.goto(`${values.hub}/ui/`);
  await page.getByText(values.command, { exact: true }).first().waitFor();
  const { questions } = await hub.call('hub/questions/list', {});
  check(questions.length === 1, questions);
  const [question] = questions;
  check(question.permission.action.kind === 'run', question);
  await pictures(page, 'inbox');
  const [earlier] = await until('it is answered', async () => {
    // The first press scrolls to the answers if they are out of view.
    await page.keyboard.press('y');
    await page.waitForTimeout(300);
    const found = await hub.earlier([question.id]);
    return found.length === 1 && found;
  }, 15_000);
  check(earlier.answeredBy === `device:${context.device.id}` && earlier.answer === 'allow', earlier);
  await hub.reach(question.taskId, 'completed');
  await page.goto(`${values.hub}/ui/tasks/${question.taskId}`);
  await page.getByText('completed').first().waitFor();
  await page.waitForTimeout(500);
  await pictures(page, 'task');
  watch.check();
  console.log(JSON.stringify({ ok: true, question }));
} finally {
  await browser.close();
  hub.socket.end();
}
