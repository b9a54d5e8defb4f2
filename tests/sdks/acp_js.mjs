// Drives an agent of the hub as an editor: `acp_js.mjs HUB VERSION SDK COMMAND...`, with the ACP
// server's command.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { AcpSchema, ConnectionCheck } from './acp_schema.mjs';
import { SDK, URL as HUB, sleep, same, so, tell } from './stage.mjs';

const command = process.argv.slice(5);
const place = `${SDK}/node_modules/@agentclientprotocol/sdk`;
const { client, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(`${place}/dist/v1/stable/acp.js`));
const published = new AcpSchema(`${place}/schema/v1/schema.json`);
const cwd = process.env.WORKSPACE;

const updates = [];
const asked = [];
const forms = [];
let fill = () => ({ action: 'cancel' });
let decide = () => ({ outcome: 'cancelled' });

const checks = [];
// Stream that shows what passes through it.
const shown = (see) => new TransformStream({
  transform(bytes, to) { see(bytes); to.enqueue(bytes); },
});
const open = () => {
  const agent = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
  const check = new ConnectionCheck(published);
  checks.push(check);
  const written = shown((bytes) => check.client(bytes));
  written.readable.pipeTo(Writable.toWeb(agent.stdin)).catch(() => {});
  const read = Readable.toWeb(agent.stdout).pipeThrough(shown((bytes) => check.agent(bytes)));
  const stream = ndJsonStream(written.writable, read);
  const app = client({ name: 'driver' })
    .onRequest('session/request_permission', ({ params }) => {
      asked.push(params);
      return { outcome: decide(params) };
    })
    .onRequest('elicitation/create', ({ params }) => { forms.push(params); return fill(params); })
    .onNotification('session/update', ({ params }) => { updates.push(params); });
  return app.connect(stream).agent;
};
const editor = open();
let session;

const texts = (kind, of = session) => updates
  .filter((it) => it.sessionId === of && it.update.sessionUpdate === kind)
  .map((it) => it.update.content.text).join('');
// The SDK may still handle notifications when the response that follows them has arrived.
const settled = async (answer) => {
  let count;
  do {
    count = updates.length;
    await sleep(20);
  } while (count !== updates.length);
  return answer;
};
const prompt = async (text, sessionId = session) => {
  updates.length = 0;
  const blocks = typeof text === 'string' ? [{ type: 'text', text }] : text;
  return settled(await editor.request('session/prompt', { sessionId, prompt: blocks }));
};
const hub = async (method, params) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await fetch(HUB, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return (await answer.json()).result;
};
const refused = (promise) => promise.then((it) => { throw new Error(JSON.stringify(it)); }, (why) => why);

async function initialize() {
  const hello = await editor.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  same([hello.protocolVersion, hello.agentInfo.name, hello.agentCapabilities.loadSession], [1, 'a2a-hub', true]);
  same(Object.keys(hello.agentCapabilities.sessionCapabilities).sort(), ['additionalDirectories', 'close', 'delete', 'list', 'resume']);
}

async function new_session() {
  ({ sessionId: session } = await editor.request('session/new', { cwd, mcpServers: [] }));
  so(session, session);
  const why = await refused(editor.request('session/new', { cwd: 'here', mcpServers: [] }));
  so(why.message.includes('absolute'), why.message);
  const more = `${cwd}/more`;
  mkdirSync(more, { recursive: true });
  const wide = { cwd, mcpServers: [], additionalDirectories: [more] };
  const { sessionId } = await editor.request('session/new', wide);
  await editor.request('session/close', { sessionId });
  const relative = await refused(editor.request('session/new', { ...wide, additionalDirectories: ['more'] }));
  so(relative.message.includes('additionalDirectories'), relative.message);
}

async function prompted() {
  const stop = await prompt('tick 3 50');
  same(stop.stopReason, 'end_turn');
  so(texts('agent_message_chunk').startsWith('1\n2\n3\n'), updates);
  so(texts('agent_message_chunk').endsWith('ticked 3 times'), updates);
  const [task] = await hub('hub/tasks/list', { workingDirectory: cwd, limit: 1 });
  same([task.contextId, task.id], [session, stop._meta['a2a-hub/taskId']]);
}

async function blocks() {
  const stop = await prompt([
    { type: 'text', text: 'history' },
    { type: 'resource_link', uri: 'file:///w/a.rs', name: 'a.rs' },
    { type: 'resource', resource: { uri: 'file:///w/b.txt', text: 'hi' } },
  ]);
  same(stop.stopReason, 'end_turn');
  const task = await hub('tasks/get', { id: stop._meta['a2a-hub/taskId'] });
  same(task.history[0].parts.map((part) => part.kind), ['text', 'file', 'file']);
}

async function permission() {
  decide = ({ options }) => ({ outcome: 'selected', optionId: options[0].optionId });
  same((await prompt('permit')).stopReason, 'end_turn');
  same(texts('agent_message_chunk'), 'allow');
  same(asked.at(-1).toolCall.title, 'may I?');
  same(asked.at(-1).options.map((option) => option.kind), ['allow_once', 'reject_once']);
  decide = ({ options }) => ({ outcome: 'selected', optionId: options[1].optionId });
  await prompt('permit');
  same(texts('agent_message_chunk'), 'deny');
  decide = () => ({ outcome: 'cancelled' });
  same((await prompt('permit')).stopReason, 'cancelled');
}

async function question() {
  same((await prompt('ask')).stopReason, 'end_turn');
  same(texts('agent_message_chunk'), 'what do you say?');
  const answered = await prompt('blue');
  same([answered.stopReason, texts('agent_message_chunk')], ['end_turn', 'blue']);
}

async function cancel() {
  const turn = prompt('tick 300 100');
  while (!texts('agent_message_chunk')) await sleep(20);
  const second = await refused(editor.request('session/prompt', { sessionId: session, prompt: [{ type: 'text', text: 'x' }] }));
  so(second.message.includes('under way'), second.message);
  await editor.notify('session/cancel', { sessionId: session });
  const stop = await turn;
  same(stop.stopReason, 'cancelled');
  same((await hub('tasks/get', { id: stop._meta['a2a-hub/taskId'] })).status.state, 'canceled');
}

async function modes() {
  const begun = await editor.request('session/new', { cwd, mcpServers: [] });
  same(begun.modes.currentModeId, 'ask');
  same(begun.modes.availableModes.map((mode) => mode.id), ['read-only', 'ask']);
  const own = begun.sessionId;
  const counts = async () => {
    await prompt('setting permissions', own);
    return texts('agent_message_chunk', own);
  };
  same(await counts(), 'ask');
  await editor.request('session/set_mode', { sessionId: own, modeId: 'read-only' });
  same(await counts(), 'read-only');
  const loaded = await editor.request('session/load', { sessionId: own, cwd, mcpServers: [] });
  same(loaded.modes.currentModeId, 'read-only');
  const wider = await refused(editor.request('session/set_mode', { sessionId: own, modeId: 'full' }));
  so(wider.code === -32602 && wider.message.includes('read-only, ask'), wider);
  same((await refused(editor.request('session/set_mode', { sessionId: 'none', modeId: 'ask' }))).code, -32002);
  await editor.request('session/set_mode', { sessionId: own, modeId: 'ask' });
  same(await counts(), 'ask');
}

async function load() {
  await prompt('tick 1 1');
  updates.length = 0;
  const another = open();
  await another.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  await another.request('session/load', { sessionId: session, cwd, mcpServers: [] });
  so(texts('user_message_chunk').includes('tick 1 1'), updates);
  const stop = await another.request('session/prompt', { sessionId: session, prompt: [{ type: 'text', text: 'tick 1 1' }] });
  same((await hub('tasks/get', { id: stop._meta['a2a-hub/taskId'] })).contextId, session);
  const why = await refused(another.request('session/load', { sessionId: 'none', cwd, mcpServers: [] }));
  same(why.code, -32002);
}

async function list() {
  const { sessions } = await editor.request('session/list', { cwd });
  const ours = sessions.find((it) => it.sessionId === session);
  same([ours.cwd, ours.title], [cwd, 'tick 3 50']);
  same((await editor.request('session/list', { cwd: `${cwd}/none` })).sessions, []);
  same((await refused(editor.request('session/list', { cursor: 'last' }))).code, -32602);
}

async function resume() {
  const another = open();
  await another.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  updates.length = 0;
  await another.request('session/resume', { sessionId: session, cwd, mcpServers: [] });
  same(updates, []);
  const stop = await another.request('session/prompt', { sessionId: session, prompt: [{ type: 'text', text: 'tick 1 1' }] });
  same(stop.stopReason, 'end_turn');
}

async function options() {
  const begun = await editor.request('session/new', { cwd, mcpServers: [] });
  const own = begun.sessionId;
  const current = (all) => Object.fromEntries(all.map((it) => [it.id, it.currentValue]));
  same(current(begun.configOptions), { agent: 'guest', mode: 'ask' });
  const set = async (configId, value) =>
    settled(await editor.request('session/set_config_option', { sessionId: own, configId, value }));
  updates.length = 0;
  same(current((await set('mode', 'read-only')).configOptions), { agent: 'guest', mode: 'read-only' });
  same(updates.at(-1).update, { sessionUpdate: 'current_mode_update', currentModeId: 'read-only' });
  await prompt('setting permissions', own);
  same(texts('agent_message_chunk', own), 'read-only');
  updates.length = 0;
  await settled(await editor.request('session/set_mode', { sessionId: own, modeId: 'ask' }));
  same(current(updates.at(-1).update.configOptions).mode, 'ask');
  same(current((await set('agent', 'echo')).configOptions), { agent: 'echo' });
  await prompt('setting permissions', own);
  so(texts('agent_message_chunk', own).includes('setting permissions'), updates);
  so((await refused(set('mode', 'ask'))).message.includes('no modes'));
  so((await refused(set('agent', 'nobody'))).message.includes('echo'));
}

async function form() {
  const asker = open();
  const clientCapabilities = { elicitation: { form: {} } };
  await asker.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities });
  const { sessionId } = await asker.request('session/new', { cwd, mcpServers: [] });
  const say = async (text) =>
    settled(await asker.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }));
  fill = () => ({ action: 'accept', content: { answer: 'blue' } });
  updates.length = 0;
  same((await say('ask')).stopReason, 'end_turn');
  same([forms.at(-1).message, forms.at(-1).mode], ['what do you say?', 'form']);
  so(texts('agent_message_chunk', sessionId).endsWith('blue'), updates);
  fill = () => ({ action: 'decline' });
  same((await say('ask')).stopReason, 'end_turn');
  updates.length = 0;
  await say('green');
  same(texts('agent_message_chunk', sessionId), 'green');
}

async function cancel_request() {
  const off = new AbortController();
  updates.length = 0;
  const blocks = [{ type: 'text', text: 'tick 300 100' }];
  const turn = editor.request('session/prompt', { sessionId: session, prompt: blocks }, { cancellationSignal: off.signal });
  while (!texts('agent_message_chunk')) await sleep(20);
  off.abort();
  same((await turn).stopReason, 'cancelled');
}

async function close_and_delete() {
  const { sessionId } = await editor.request('session/new', { cwd, mcpServers: [] });
  updates.length = 0;
  const turn = editor.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'tick 300 100' }] });
  while (!texts('agent_message_chunk', sessionId)) await sleep(20);
  await editor.request('session/close', { sessionId });
  same((await turn).stopReason, 'cancelled');
  same((await refused(prompt('hi', sessionId))).code, -32002);
  const listed = async () => (await editor.request('session/list', {})).sessions.some((it) => it.sessionId === sessionId);
  same(await listed(), true);
  await editor.request('session/delete', { sessionId });
  same(await listed(), false);
  await editor.request('session/delete', { sessionId });
}

async function errors() {
  const failed = await refused(prompt('fail'));
  so(failed.message && failed.code === -32603, failed);
  same((await prompt('reject')).stopReason, 'end_turn'); // at a `refusal`, editors remove prompt and reason
  same((await refused(prompt([]))).code, -32602);
  same((await refused(prompt('hi', 'none'))).code, -32002);
  same((await refused(editor.request('session/fork', { sessionId: session }))).code, -32601);
}

// Every line that the hub wrote in the steps before.
async function schema() {
  same(checks.flatMap((check) => check.faults.agent), []);
  const kinds = new Set(checks.flatMap((check) => [...check.kinds]));
  const wanted = [
    'initialize result', 'session/new result', 'session/load result', 'session/resume result', 'session/list result',
    'session/prompt result', 'session/set_mode result', 'session/set_config_option result', 'session/close result',
    'session/delete result', 'session/request_permission', 'elicitation/create', 'session/prompt error',
    'session/update agent_message_chunk', 'session/update user_message_chunk', 'session/update session_info_update',
    'session/update current_mode_update', 'session/update config_option_update',
  ];
  same(wanted.filter((kind) => !kinds.has(kind)), []);
  const copy = new URL('../schemas/acp-v1.json', import.meta.url);
  same(published.json, JSON.parse(readFileSync(copy, 'utf8')));

  // An invalid line is found.
  for (const [message, where] of [
    [{ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'tool_call', title: 'x' } } }, 'toolCallId'],
    [{ method: 'session/update', params: { sessionId: 7, update: { sessionUpdate: 'current_mode_update', currentModeId: 'ask' } } }, 'sessionId'],
    [{ id: 1, result: { stopReason: 'done' } }, '/id'],
    [{ id: null, error: { code: 'x', message: 'y' } }, 'code'],
    [{ method: 'session/prompt', id: 1, params: {} }, '/method'],
  ]) {
    const check = new ConnectionCheck(published);
    const line = JSON.stringify({ jsonrpc: '2.0', ...message });
    check.agent(new TextEncoder().encode(`${line}\n`));
    const { agent: faults } = check.faults;
    so(faults.length === 1 && faults[0].includes(where) && faults[0].endsWith(line), faults);
  }
}

await tell({
  initialize, new_session, prompted, blocks, permission, question, cancel, modes, load, list, resume, options, form,
  cancel_request, close_and_delete, errors, schema,
});
