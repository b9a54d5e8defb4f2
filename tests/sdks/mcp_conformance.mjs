// Runs the official conformance suite of MCP: `mcp_conformance.mjs HUB BASELINE SDK TASK
// AUTHORIZATION`. Needs Node.js 22. Prints one step with the suite's summary.
//
// The suite calls tools, reads resources and gets prompts of its example server by fixed names. A
// proxy replaces these names and its own address by those of the hub, adds the hub's token, since
// requests with an `Origin` need one, and changes nothing else: a tool `test_x` becomes a message to
// the agent `guest`, which has the fixtures as behaviours, `test://` becomes a task and its
// artifacts, and the prompts and tools of the agent's skills lose its name.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { URL as HUB, BINDING as BASELINE, SDK, tell } from './stage.mjs';

const [task, authorization] = process.argv.slice(5);
const hub = new URL(HUB);
const RESOURCES = {
  'test://static-text': 'static-text',
  'test://static-binary': 'static-binary',
  'test://template/123/data': '123',
};

/** A message of the suite, with the names of the hub. */
function renamed(message) {
  const { method, params } = message;
  if (method === 'tools/call' && params.name.startsWith('test_')) {
    const text = [params.name, ...Object.values(params.arguments ?? {})].join(' ');
    return { ...message, params: { ...params, name: 'guest', arguments: { message: text } } };
  }
  if (method === 'resources/read' && params.uri in RESOURCES) {
    const uri = `a2a-hub://tasks/${task}/artifacts/${RESOURCES[params.uri]}`;
    return { ...message, params: { ...params, uri } };
  }
  if (method === 'resources/subscribe' || method === 'resources/unsubscribe') {
    return { ...message, params: { ...params, uri: `a2a-hub://tasks/${task}` } };
  }
  if (method === 'prompts/get') {
    return { ...message, params: { ...params, name: `guest_${params.name}` } };
  }
  if (method === 'completion/complete') {
    const ref = { ...params.ref, name: `guest_${params.ref.name}` };
    return { ...message, params: { ...params, ref } };
  }
  return message;
}

/** Answers of the hub with the names of the suite, line by line. */
function named() {
  let rest = '';
  const suite = (text) => text.replaceAll('"name":"guest_', '"name":"');
  return new Transform({
    transform(chunk, _, done) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      done(null, lines.map((line) => `${suite(line)}\n`).join(''));
    },
    flush(done) {
      done(null, suite(rest));
    },
  });
}

/** Body of a request with the names of the hub. */
async function body(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  return whole.length ? Buffer.from(JSON.stringify(renamed(JSON.parse(whole)))) : whole;
}

const proxy = createServer(async (incoming, outgoing) => {
  const whole = await body(incoming);
  // The hub is reached under its address; a foreign one stays as it is.
  const addressed = (value) => String(value).replace(`127.0.0.1:${proxy.address().port}`, hub.host);
  const headers = { ...incoming.headers, authorization };
  for (const name of ['host', 'origin']) if (name in headers) headers[name] = addressed(headers[name]);
  if (incoming.method === 'POST') {
    delete headers['transfer-encoding'];
    headers['content-length'] = whole.length;
  }
  const { method, url: path } = incoming;
  const passed = request({ host: hub.hostname, port: hub.port, method, path, headers }, (answer) => {
    const { 'content-length': _, ...answered } = answer.headers;
    outgoing.writeHead(answer.statusCode, answered);
    outgoing.flushHeaders();
    answer.setEncoding('utf8').pipe(named()).pipe(outgoing);
  });
  passed.on('error', (why) => outgoing.destroy(why));
  outgoing.on('close', () => passed.destroy());
  passed.end(whole);
});
await new Promise((done) => proxy.listen(0, '127.0.0.1', done));

async function suite() {
  const cwd = await mkdtemp(join(tmpdir(), 'mcp-conformance-'));
  const program = join(SDK, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
  const args = [program, 'server', '--url', url, '--suite', 'all', '--expected-failures', BASELINE];
  const run = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [run.stdout, run.stderr]) stream.on('data', (data) => { text += data; });
  const code = await new Promise((done) => run.on('close', done));
  await rm(cwd, { recursive: true });
  const summary = text.slice(text.indexOf('=== SUMMARY ==='));
  if (code !== 0) throw new Error(`the suite ended with ${code}:\n${text.slice(-6_000)}`);
  return summary;
}

await tell({ suite }, 120_000);
