// Drives an agent with the JavaScript SDK for A2A 1.0: `client_js1.mjs URL BINDING SDK`. With `A2A_KEY` in the
// environment it authenticates by the scheme that the card declares.

import { randomUUID } from 'node:crypto';

import { BINDING, URL, all, receiver, refused, same, sdk, sleep, so, tell } from './stage.mjs';

const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  sdk('@a2a-js/sdk/client');
const { Role, TaskState, verifyAgentCardSignature } = sdk('@a2a-js/sdk');
const jose = sdk('jose');
const errors = sdk('@a2a-js/sdk/errors');

const KEY = process.env.A2A_KEY;

/** Sends the key as the first security requirement of the agent's card says. */
const authenticate = {
  async before(args) {
    const [{ schemes }] = args.agentCard.securityRequirements;
    const { scheme } = args.agentCard.securitySchemes[Object.keys(schemes)[0]];
    same([scheme.$case, scheme.value.scheme], ['httpAuthSecurityScheme', 'bearer']);
    args.options = { ...args.options };
    args.options.serviceParameters = { ...args.options.serviceParameters, Authorization: `Bearer ${KEY}` };
  },
  async after() {},
};

// The card needs the key as well, and is read before the scheme is known.
const cardResolver = new DefaultAgentCardResolver(
  KEY && { fetchImpl: (url, how) => fetch(url, { ...how, headers: { ...how?.headers, Authorization: `Bearer ${KEY}` } }) },
);

const transports = { JSONRPC: JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new transports[BINDING]()],
    preferredTransports: [BINDING],
    cardResolver,
    clientConfig: { interceptors: KEY ? [authenticate] : [] },
  }),
);

let card;
let client;

const said = (text, of = {}) => ({
  tenant: '',
  metadata: undefined,
  configuration: { acceptedOutputModes: [], returnImmediately: false, ...of.configuration },
  message: {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: '' }],
    contextId: of.contextId ?? '',
    taskId: of.taskId ?? '',
    extensions: [],
    referenceTaskIds: [],
  },
});
/** Orders members by name, as canonical JSON does. */
const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, it]) => [name, sorted(it)]));
};

const send = (text, of) => client.sendMessage(said(text, of));
const stream = (text, of) => all(client.sendMessageStream(said(text, of)));
const atOnce = (text) => send(text, { configuration: { returnImmediately: true } });
const get = (task, how) => client.getTask({ tenant: '', id: task.id, ...how });
const text = ({ parts }) => parts.map((part) => part.content.value).join('');
const state = ({ status }) => TaskState[status.state];
const kinds = (told) => told.map(({ payload }) => payload.$case);
const last = (told) => told.at(-1).payload.value;

await tell({
  async discover() {
    card = await cardResolver.resolve(`${URL}/`);
    same(card.name, 'test-guests');
    const bindings = card.supportedInterfaces
      .filter(({ protocolVersion }) => protocolVersion === '1.0')
      .map(({ protocolBinding }) => protocolBinding);
    so(bindings.includes(BINDING), card);
    so(card.capabilities.streaming && card.capabilities.pushNotifications, card);
    client = await factory.createFromUrl(`${URL}/`);
    same([client.transport.protocolName, client.protocolVersion], [BINDING, '1.0']);
    return bindings.join(', ');
  },

  async signature() {
    // The SDK prints each signature that is of another form; the steps are on the same output.
    console.debug = () => {};
    // With the SDK, which reads the members of 1.0, and loses the security schemes of a card that it has read before.
    const published = async (kid, jku) => (await (await fetch(jku)).json()).keys.find((key) => key.kid === kid);
    const headers = KEY ? { Authorization: `Bearer ${KEY}` } : {};
    const served = await (await fetch(`${URL}/.well-known/agent-card.json`, { headers })).json();
    const verify = verifyAgentCardSignature(published);
    await verify(served);
    const elsewhere = served.supportedInterfaces.map((one) => ({ ...one, url: 'https://evil.example' }));
    await refused(verify({ ...served, supportedInterfaces: elsewhere }), Error);
    // With `jose` alone: all members as they arrived, those of 0.3 included.
    const { signatures, ...raw } = served;
    const payload = jose.base64url.encode(JSON.stringify(sorted(raw)));
    const checked = signatures.map(async (one) => {
      const { kid, jku } = jose.decodeProtectedHeader(one);
      const key = await jose.importJWK(await published(kid, jku));
      return jose.flattenedVerify({ ...one, payload }, key, { algorithms: ['EdDSA'] });
    });
    await Promise.any(checked);
  },

  async send_task() {
    const task = await send('flood 3');
    same(state(task), 'TASK_STATE_COMPLETED');
    same(task.artifacts.map(text), ['1\n2\n3\n']);
    same(text(task.history[0]), 'flood 3');
    so(task.contextId && task.status.timestamp, task);
  },

  async send_message() {
    const answer = await send('reply hi');
    same([answer.role, text(answer)], [Role.ROLE_AGENT, 'hi']);
    const told = await stream('reply hi');
    // The agent declares no direct messages: its message completes the task of the stream.
    const { message } = last(told).status;
    same([kinds(told)[0], message.role, text(message)], ['task', Role.ROLE_AGENT, 'hi']);
  },

  async non_blocking() {
    let task = await atOnce('tick 5 100');
    so(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'].includes(state(task)), task);
    while (state((task = await get(task))) !== 'TASK_STATE_COMPLETED') await sleep(50);
    same(text(task.artifacts[0]), '1\n2\n3\n4\n5\n');
  },

  async stream() {
    const told = await stream('tick 3 100');
    same(kinds(told)[0], 'task');
    const pieces = told.filter(({ payload }) => payload.$case === 'artifactUpdate').map(({ payload }) => payload.value);
    same(pieces.map(({ artifact }) => text(artifact)), ['1\n', '2\n', '3\n']);
    same(pieces.map(({ append }) => append), [false, true, true]);
    same(pieces.map(({ lastChunk }) => lastChunk), [false, false, true]);
    same(state(last(told)), 'TASK_STATE_COMPLETED');
  },

  async parts() {
    const [artifact] = (await send('parts')).artifacts;
    same(artifact.parts.map(({ content }) => content.$case), ['text', 'raw', 'url', 'data']);
    const [, raw, url, data] = artifact.parts;
    same([[...raw.content.value], raw.filename], [[0, 255], 'a.bin']);
    same([url.content.value, url.mediaType], ['https://example.com/a.png', 'image/png']);
    same(data.content.value, { n: [1, null] });
    same([artifact.name, artifact.extensions], ['Parts', ['urn:a2a-hub:test']]);
  },

  async get_task() {
    const task = await send('flood 1');
    same((await get(task, { historyLength: 0 })).history, []);
    same((await get(task, { historyLength: 1 })).history.length, 1);
    const whole = await get(task);
    same([text(whole.history[0]), whole.contextId], ['flood 1', task.contextId]);
  },

  async list_tasks() {
    const contextId = randomUUID();
    const ids = [];
    for (let n = 0; n < 3; n++) ids.unshift((await send('flood 1', { contextId })).id);
    const list = (how) =>
      client.listTasks({ tenant: '', contextId, status: 0, pageToken: '', statusTimestampAfter: undefined, ...how });
    const found = [];
    let pageToken = '';
    do {
      const page = await list({ pageSize: 2, pageToken });
      same([page.totalSize, page.pageSize], [3, 2]);
      so(page.tasks.every(({ artifacts }) => artifacts.length === 0), page);
      found.push(...page.tasks.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken);
    same(found, ids);
    const done = await list({ status: TaskState.TASK_STATE_COMPLETED, includeArtifacts: true });
    same(done.tasks.map(({ artifacts }) => artifacts.length), [1, 1, 1]);
    same((await list({ status: TaskState.TASK_STATE_FAILED })).totalSize, 0);
  },

  async subscribe() {
    const { id } = await atOnce('tick 10 100');
    const listen = () => all(client.resubscribeTask({ tenant: '', id }));
    for (const told of await Promise.all([listen(), listen()])) {
      same([kinds(told)[0], told[0].payload.value.id], ['task', id]);
      same(state(last(told)), 'TASK_STATE_COMPLETED');
      const pieces = told.filter(({ payload }) => payload.$case === 'artifactUpdate');
      same(text(last(pieces).artifact), '10\n');
    }
  },

  async push() {
    const { url, came, waitFor } = await receiver();
    const asked = await send('ask');
    const made = await client.createTaskPushNotificationConfig({
      tenant: '',
      id: '',
      taskId: asked.id,
      url,
      token: 'mine',
      authentication: { scheme: 'Bearer', credentials: 'let-me-in' },
    });
    so(made.id, made);
    const which = { tenant: '', taskId: asked.id, id: made.id };
    const got = await client.getTaskPushNotificationConfig(which);
    same([got.url, got.token, got.authentication.scheme], [url, 'mine', 'Bearer']);
    await send('blue', { taskId: asked.id });
    const { headers, body } = await waitFor(
      ({ statusUpdate }) => statusUpdate?.status.state === 'TASK_STATE_COMPLETED',
    );
    same(body.statusUpdate.taskId, asked.id);
    same([headers['x-a2a-notification-token'], headers.authorization], ['mine', 'Bearer let-me-in']);

    const of = { tenant: '', taskId: asked.id, pageSize: 0, pageToken: '' };
    same((await client.listTaskPushNotificationConfig(of)).configs.length, 1);
    await client.deleteTaskPushNotificationConfig(which);
    same((await client.listTaskPushNotificationConfig(of)).configs.length, 0);

    const taskPushNotificationConfig = { tenant: '', id: '', taskId: '', url, token: '', authentication: undefined };
    const { id } = await send('flood 1', { configuration: { taskPushNotificationConfig } });
    await waitFor(({ statusUpdate }) => statusUpdate?.taskId === id);
    return `${came.length} notifications`;
  },

  async cancel() {
    const { id } = await atOnce('tick 100 100');
    const cancel = () => client.cancelTask({ tenant: '', id, metadata: undefined });
    same(state(await cancel()), 'TASK_STATE_CANCELED');
    await refused(cancel(), errors.TaskNotCancelableError);
  },

  async input_required() {
    const { id, contextId, status } = await send('ask');
    same([TaskState[status.state], text(status.message)], ['TASK_STATE_INPUT_REQUIRED', 'what do you say?']);
    const told = await stream('blue', { taskId: id, contextId });
    same(told[0].payload.value.id, id);
    same(text(last(told).status.message), 'blue');
    const login = await send('auth');
    same(state(login), 'TASK_STATE_AUTH_REQUIRED');
    same(state(await send('me', { taskId: login.id })), 'TASK_STATE_COMPLETED');
  },

  async ends() {
    same(state(await send('reject')), 'TASK_STATE_REJECTED');
    same(state(await send('fail')), 'TASK_STATE_FAILED');
  },

  async extended_card() {
    // Only clients with a token have an extended card, and the hub's own user needs no token.
    same(card.capabilities.extendedAgentCard ?? false, Boolean(KEY));
    if (!KEY) await refused(client.transport.getExtendedAgentCard({ tenant: '' }), errors.UnsupportedOperationError);
    same((await client.getAgentCard()).name, 'test-guests');
  },

  async error_mapping() {
    await refused(get({ id: 'none' }), errors.TaskNotFoundError);
    await refused(client.cancelTask({ tenant: '', id: 'none' }), errors.TaskNotFoundError);
    const { id } = await send('flood 1');
    await refused(send('more', { taskId: id }), errors.UnsupportedOperationError);
    await refused(stream('more', { taskId: id }), errors.UnsupportedOperationError);
    await refused(send('more', { taskId: 'none' }), errors.TaskNotFoundError);
    await refused(all(client.resubscribeTask({ tenant: '', id })), errors.UnsupportedOperationError);
    await refused(all(client.resubscribeTask({ tenant: '', id: 'none' })), errors.TaskNotFoundError);
  },
});
