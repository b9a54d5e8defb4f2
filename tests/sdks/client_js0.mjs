// Drives an agent with the JavaScript SDK for A2A 0.3: `client_js0.mjs URL BINDING SDK`.

import { randomUUID } from 'node:crypto';

import { BINDING, URL, all, receiver, refused, same, sdk, sleep, so, tell } from './stage.mjs';

const {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} = sdk('@a2a-js/sdk/client');

const transports = { JSONRPC: JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new transports[BINDING]()],
    preferredTransports: [BINDING],
  }),
);

let card;
let client;

const said = (text, { configuration, ...of } = {}) => ({
  configuration: { blocking: true, ...configuration },
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...of },
});
const send = (text, of) => client.sendMessage(said(text, of));
const stream = (text, of) => all(client.sendMessageStream(said(text, of)));
const atOnce = (text) => send(text, { configuration: { blocking: false } });
const get = ({ id }, how) => client.getTask({ id, ...how });
const text = ({ parts }) => parts.map((part) => part.text).join('');
const state = ({ status }) => status.state;

await tell({
  async discover() {
    card = await new DefaultAgentCardResolver().resolve(`${URL}/`);
    same([card.name, card.protocolVersion], ['test-guests', '0.3.0']);
    const others = card.additionalInterfaces.map(({ transport }) => transport);
    so([card.preferredTransport, ...others].includes(BINDING), card);
    so(card.capabilities.streaming && card.capabilities.pushNotifications, card);
    client = await factory.createFromUrl(`${URL}/`);
    return others.join(', ');
  },

  async send_task() {
    const task = await send('flood 3');
    same([task.kind, state(task)], ['task', 'completed']);
    same(task.artifacts.map(text), ['1\n2\n3\n']);
    same(text(task.history[0]), 'flood 3');
    so(task.contextId && task.status.timestamp, task);
  },

  async send_message() {
    const answer = await send('reply hi');
    same([answer.kind, answer.role, text(answer)], ['message', 'agent', 'hi']);
    // The agent declares no direct messages: its message completes the task of the stream.
    const told = await stream('reply hi');
    const { message } = told.at(-1).status;
    same([told[0].kind, message.role, text(message)], ['task', 'agent', 'hi']);
  },

  async non_blocking() {
    let task = await atOnce('tick 15 100');
    so(['submitted', 'working'].includes(state(task)), task);
    while (state((task = await get(task))) !== 'completed') await sleep(50);
    so(text(task.artifacts[0]).endsWith('14\n15\n'), task);
  },

  async stream() {
    const told = await stream('tick 3 100');
    same(told[0].kind, 'task');
    const pieces = told.filter(({ kind }) => kind === 'artifact-update');
    same(pieces.map(({ artifact }) => text(artifact)), ['1\n', '2\n', '3\n']);
    // On REST, this SDK's converter drops `append` and the names of files.
    if (BINDING === 'JSONRPC') same(pieces.map(({ append }) => append ?? false), [false, true, true]);
    same(pieces.map(({ lastChunk }) => lastChunk ?? false), [false, false, true]);
    const last = told.at(-1);
    same([last.kind, last.final, state(last)], ['status-update', true, 'completed']);
  },

  async parts() {
    const [artifact] = (await send('parts')).artifacts;
    const [, raw, url, data] = artifact.parts;
    same(artifact.parts.map(({ kind }) => kind), ['text', 'file', 'file', 'data']);
    same(raw.file.bytes, 'AP8=');
    if (BINDING === 'JSONRPC') same(raw.file.name, 'a.bin');
    same([url.file.uri, url.file.mimeType], ['https://example.com/a.png', 'image/png']);
    same(data.data, { n: [1, null] });
    same(artifact.name, 'Parts');
  },

  async get_task() {
    const task = await send('flood 1');
    same((await get(task, { historyLength: 1 })).history.length, 1);
    const whole = await get(task);
    same([text(whole.history[0]), whole.contextId], ['flood 1', task.contextId]);
  },

  async subscribe() {
    const { id } = await atOnce('tick 20 100');
    const listen = () => all(client.resubscribeTask({ id }));
    for (const told of await Promise.all([listen(), listen()])) {
      same([told[0].kind, told[0].id], ['task', id]);
      same([told.at(-1).final, state(told.at(-1))], [true, 'completed']);
      same(text(told.findLast(({ kind }) => kind === 'artifact-update').artifact), '20\n');
    }
  },

  async push() {
    const { url, came, waitFor } = await receiver();
    const asked = await send('ask');
    const authentication = { schemes: ['Bearer'], credentials: 'let-me-in' };
    const wanted = { id: 'mine', url, token: 'token', authentication };
    const made = await client.setTaskPushNotificationConfig({ taskId: asked.id, pushNotificationConfig: wanted });
    same([made.taskId, made.pushNotificationConfig.url], [asked.id, url]);
    const which = { id: asked.id, pushNotificationConfigId: 'mine' };
    same((await client.getTaskPushNotificationConfig(which)).pushNotificationConfig, wanted);
    await send('blue', { taskId: asked.id });
    const { headers, body } = await waitFor(({ status }) => status.state === 'completed');
    same([body.kind, body.id], ['task', asked.id]);
    same([headers['x-a2a-notification-token'], headers.authorization], ['token', 'Bearer let-me-in']);

    same((await client.listTaskPushNotificationConfig({ id: asked.id })).length, 1);
    await client.deleteTaskPushNotificationConfig(which);
    same(await client.listTaskPushNotificationConfig({ id: asked.id }), []);

    const { id } = await send('flood 1', { configuration: { pushNotificationConfig: { url } } });
    await waitFor((task) => task.id === id && state(task) === 'completed');
    return `${came.length} notifications`;
  },

  async cancel() {
    const { id } = await atOnce('tick 100 100');
    same(state(await client.cancelTask({ id })), 'canceled');
    await refused(client.cancelTask({ id }), TaskNotCancelableError);
  },

  async input_required() {
    const { id, contextId, status } = await send('ask');
    same([status.state, text(status.message)], ['input-required', 'what do you say?']);
    const told = await stream('blue', { taskId: id, contextId });
    same(told[0].id, id);
    same(text(told.at(-1).status.message), 'blue');
    const login = await send('auth');
    same(state(login), 'auth-required');
    same(state(await send('me', { taskId: login.id })), 'completed');
  },

  async ends() {
    same(state(await send('reject')), 'rejected');
    same(state(await send('fail')), 'failed');
  },

  async extended_card() {
    // Only clients with a token have an extended card, and the hub's own user needs no token.
    so(!card.supportsAuthenticatedExtendedCard, card);
    same((await client.getAgentCard()).skills[0].id, 'behave');
  },

  async error_mapping() {
    await refused(get({ id: 'none' }), TaskNotFoundError);
    await refused(client.cancelTask({ id: 'none' }), TaskNotFoundError);
    const { id } = await send('flood 1');
    await refused(send('more', { taskId: id }), UnsupportedOperationError);
    await refused(send('more', { taskId: 'none' }), TaskNotFoundError);
  },
});
