// Support of the JavaScript drivers: reporting of steps, and a receiver of notifications.

import { deepStrictEqual } from 'node:assert';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

/** Timeout of a step, after which it is reported as failed. */
const WITHIN_MS = 30_000;

/** URL of the driven agent, its binding, and the folder with the SDK. */
export const [URL, BINDING, SDK] = process.argv.slice(2);
export const sdk = createRequire(`${SDK}/`);

export { sleep };

/**
 * Runs the steps in order and prints a line of JSON for each. Ends the process; its code is 0 if
 * all succeeded.
 */
export async function tell(steps, within = WITHIN_MS) {
  let good = true;
  for (const [step, take] of Object.entries(steps)) {
    const line = { step, binding: BINDING, ok: true, detail: '' };
    try {
      const late = sleep(within, undefined, { ref: false }).then(() => {
        throw new Error(`not done after ${within} ms`);
      });
      line.detail = (await Promise.race([take(), late])) ?? '';
    } catch (why) {
      good = false;
      Object.assign(line, { ok: false, detail: String(why?.stack ?? why) });
    }
    console.log(JSON.stringify(line));
  }
  process.exit(good ? 0 : 1);
}

/** Fails with both values unless they are equal. */
export const same = deepStrictEqual;

/** Fails with the given value unless the condition holds. */
export function so(it, told) {
  if (!it) throw new Error(`not so: ${JSON.stringify(told)}`);
}

/** Fails unless the promise is rejected with an error of this kind. */
export async function refused(promise, kind) {
  const answer = await promise.then(
    (answer) => ({ answer }),
    (why) => ({ why }),
  );
  if (!('why' in answer)) throw new Error(`${JSON.stringify(answer)} instead of ${kind.name}`);
  if (!(answer.why instanceof kind)) throw new Error(`not ${kind.name}`, { cause: answer.why });
}

/** Collects all events. */
export async function all(told) {
  const heard = [];
  for await (const event of told) heard.push(event);
  return heard;
}

/** Loopback server that receives notifications. */
export async function receiver() {
  const came = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      came.push({ headers: request.headers, body: JSON.parse(body) });
      response.end();
    });
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const waitFor = async (wanted) => {
    for (const until = Date.now() + WITHIN_MS / 2; Date.now() < until; await sleep(50)) {
      const found = came.find(({ body }) => wanted(body));
      if (found) return found;
    }
    throw new Error(`it never came; there came ${JSON.stringify(came)}`);
  };
  return { url: `http://127.0.0.1:${server.address().port}/news`, came, waitFor };
}
