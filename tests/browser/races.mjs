// Story about questions that the page and a terminal answer at the same moment.

import { setTimeout as sleep } from 'node:timers/promises';
import { each } from './browser.mjs';
import { check, textOf, until } from './hub.mjs';
import { choose, openRows, rowOf } from './inbox.mjs';

/** Answers `rounds` questions in both places at once: each counts once, and both agree on it. */
export async function races({ hub, open, rounds, figures }) {
  const run = Date.now().toString(36);
  const numbers = Array.from({ length: rounds }, (_, at) => String(at + 1).padStart(3, '0'));
  const text = (number) => `race ${number} of ${run}`;
  const asked = await each(numbers, 8, (number) => hub.ask('approval-gate', text(number)));
  const page = await open('');
  const wins = { page: 0, terminal: 0 };
  // Time in milliseconds by which the page begins before the terminal.
  let lead = 0;
  for (const [at, number] of numbers.entries()) {
    const { question, task } = asked[at];
    await choose(page, text(number));
    const reason = `no, terminal ${number}`;
    const answer = { ids: [question], answer: reason };
    const [result] = lead > 0
      ? await together(page.keyboard.press('y'), sleep(lead).then(() => hub.call('hub/questions/answer', answer)))
      : await together(sleep(-lead).then(() => page.keyboard.press('y')), hub.call('hub/questions/answer', answer));
    const winner = result.answered ? 'terminal' : 'page';
    wins[winner] += 1;
    // The loser gets a lead in the next round, so that both come as close as they can.
    lead += winner === 'page' ? -4 : 4;
    const shown = winner === 'page' ? /Allowed by (you|device:)/ : `Denied by ${await terminalName(hub, question)}: terminal ${number}`;
    await rowOf(page, text(number)).getByText(shown).first().waitFor();
    const state = winner === 'page' ? 'completed' : 'rejected';
    await hub.reach(task, state);
    if (winner === 'page') check(result.earlier?.answer === 'allow' && result.error, result);
  }
  const past = await hub.earlier(asked.map((it) => it.question));
  check(past.length === rounds, `${past.length} answers for ${rounds} questions`);
  check(past.every((it) => it.outcome === 'answered'), past.filter((it) => it.outcome !== 'answered'));
  const byPage = past.filter((it) => it.answeredBy.startsWith('device:'));
  check(byPage.length === wins.page && byPage.every((it) => it.answer === 'allow'), { wins, byPage: byPage.length });
  await agentsHeardOnce(hub, asked);
  await until('no question of the race is open in the page', async () =>
    (await openRows(page).filter({ hasText: run }).count()) === 0,
  );
  check(rounds < 10 || (wins.page > 0 && wins.terminal > 0), { 'one side wins always': wins });
  figures.races = { rounds, ...wins };
  return `page ${wins.page}, terminal ${wins.terminal}`;
}

/** Returns the result of the second one of two. */
async function together(one, other) {
  return (await Promise.all([one, other]))[1];
}

async function terminalName(hub, question) {
  const [past] = await hub.earlier([question]);
  check(past && !past.answeredBy.startsWith('device:'), past);
  return past.answeredBy;
}

/** Each task has one answer of its client. */
async function agentsHeardOnce(hub, asked) {
  for (const { task } of asked) {
    const { history } = await hub.task(task);
    const answers = history.filter((it) => it.role === 'user').slice(1).map(textOf);
    check(answers.length === 1, { task, answers });
  }
}
