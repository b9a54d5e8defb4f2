// Drives the hub as an MCP client: `mcp_js.mjs HUB VERSION SDK WHERE...`, with the URL or command
// of the server.

import { pathToFileURL } from 'node:url';
import { URL as HUB, sdk, sleep, same, so, tell } from './stage.mjs';

const where = process.argv.slice(5);
const load = (name) => import(pathToFileURL(sdk.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const types = await load('types.js');

const isHttp = where[0].startsWith('http');
const transport = () => isHttp
  ? new StreamableHTTPClientTransport(new URL(where[0]))
  : new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env });

const forms = [];
const answers = [];
let changes = 0;
const client = new Client({ name: 'driver', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(types.ElicitRequestSchema, async (request) => {
  forms.push(request.params);
  return answers.shift();
});
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => { changes += 1; });

const ask = async (method, params) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await fetch(HUB, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return answer.json();
};
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const fact = (result, name) => result._meta?.[`a2a-hub/${name}`];

async function initialize() {
  await client.connect(transport());
  same(client.getServerVersion().name, 'a2a-hub');
  return types.LATEST_PROTOCOL_VERSION;
}

async function tools() {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ['echo', 'guest', 'list_agents', 'check_task', 'cancel_task', 'answer_task']) {
    so(names.includes(name), names);
  }
}

async function progress() {
  const told = [];
  const result = await call('guest', { message: 'tick 4 300' }, { onprogress: (it) => told.push(it.message) });
  same(result.content[0].text, '1\n2\n3\n4\n');
  so(told.join('').includes('4\n'), told);
}

async function elicitation() {
  answers.push({ action: 'accept', content: { answer: 'blue' } });
  const result = await call('guest', { message: 'ask' });
  same([result.content[0].text, fact(result, 'state')], ['blue', 'completed']);
  answers.push({ action: 'decline' });
  same((await call('guest', { message: 'permit' })).content[0].text, 'deny');
  same(forms[1].requestedSchema.properties.decision.enum, ['allow', 'deny']);
}

async function cancellation() {
  const stop = new AbortController();
  const options = { signal: stop.signal, onprogress: () => stop.abort('enough') };
  await call('guest', { message: 'tick 300 100' }, options).catch(() => {});
  for (let n = 0; n < 100; n += 1) {
    const { result: [newest] } = await ask('hub/tasks/list', { agentId: 'guest', limit: 1 });
    if (newest.status.state === 'canceled') return;
    await sleep(100);
  }
  throw new Error('the task goes on');
}

async function resources() {
  const made = await call('guest', { message: 'parts' });
  const link = made.content.find((block) => block.type === 'resource_link');
  const { resources: listed } = await client.listResources();
  so(listed.some((resource) => resource.uri === link.uri), listed);
  const { contents } = await client.readResource({ uri: link.uri });
  same(contents[0].text, 'a text');
}

async function errors() {
  const failed = await call('guest', { message: 'fail' });
  same([failed.isError, fact(failed, 'state')], [true, 'failed']);
  same((await call('guest', {})).isError, true);
  const refused = await call('No Tool', {}).then(() => null, (why) => why);
  same(refused?.code, -32602);
}

async function tasks() {
  const { tasks } = client.experimental;
  const { tools: all } = await client.listTools();
  same(all.find((tool) => tool.name === 'guest').execution, { taskSupport: 'optional' });
  const call = (message) => ({ name: 'guest', arguments: { message } });
  const states = [];
  for await (const told of tasks.callToolStream(call('tick 4 300'))) states.push(told);
  same(states.at(0).type, 'taskCreated');
  so(states.some((told) => told.type === 'taskStatus' && told.task.status === 'working'), states);
  same(states.at(-1).result?.content[0].text, '1\n2\n3\n4\n');

  answers.push({ action: 'accept', content: { answer: 'green' } });
  let last;
  for await (const told of tasks.callToolStream(call('ask'))) last = told;
  same(last.result?.structuredContent.text, 'green');

  const begun = [];
  for await (const told of tasks.callToolStream(call('tick 300 100'))) {
    begun.push(told);
    if (told.type === 'taskCreated') {
      const { taskId } = told.task;
      so((await tasks.listTasks()).tasks.some((task) => task.taskId === taskId), taskId);
      same((await tasks.cancelTask(taskId)).status, 'cancelled');
      same((await tasks.getTaskResult(taskId, types.CallToolResultSchema)).isError, true);
    }
  }
  same(begun.at(-1).type, 'error');
  const unknown = await tasks.getTask('unknown').then(() => null, (why) => why);
  same(unknown?.code, -32602);
}

async function list_changed() {
  await ask('hub/agents/deregister', { agentId: 'echo' });
  for (let n = 0; n < 100 && changes === 0; n += 1) await sleep(100);
  so(changes > 0, changes);
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  same(names.includes('echo'), false);
}

await tell({ initialize, tools, progress, elicitation, cancellation, resources, errors, tasks, list_changed });
