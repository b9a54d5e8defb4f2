/**
 * Hub for tests without WebAssembly: follows a script and records all calls. Calls that the script
 * does not name are denied.
 */

import { cardJson, checkHealth, defineAgent, runTask } from "./agent.js";
import { Failure } from "./failure.js";
import { End, Message, Outcome, artifactFromContract, messageToContract, statusToContract } from "./message.js";
import { ScriptedContextMemory } from "./mind.js";

const bytesOf = (content) => (typeof content === "string" ? new TextEncoder().encode(content) : content);
const fail = (kind, text) => {
  throw { tag: kind, ...(text === undefined ? {} : { val: text }) };
};
const denied = (request) => fail("denied", `${request}: not in the script of the test`);

export class ScriptedHost {
  /** Emitted statuses and artifacts, oldest first. */
  events = [];
  /** Questions to the client. */
  asked = [];
  /** Started programs: `{ program, args, env, cwd, stdin }`. */
  spawned = [];
  /** Sent requests. */
  requests = [];
  /** Log lines: `{ level, text }`. */
  logs = [];
  /** Written files: `{ name, bytes }`. */
  files = [];
  /** Calls of other agents: `{ agent, message, options }`. */
  calls = [];
  /** Searches for other agents. A search finds all agents that the script lets it call. */
  searches = [];
  /** Called tools: `{ server, name, args }`. */
  toolCalls = [];
  /** Stored values, by key. */
  memory = new Map();
  /** Context memory: `working`, and `items`. */
  mind = new ScriptedContextMemory();
  /** Results of steps by key, kept between runs as after a restart. */
  steps = new Map();
  /** Further messages to called agents: `{ agent, message }`. */
  sent = [];
  #answers = [];
  #messages = [];
  #programs = new Map();
  #responses = [];
  #agents = new Map();
  #tools = new Map();
  #rules = [];
  #settings = new Map([["permissions", "ask"], ["approval_timeout", "3600000"]]);
  #cancelAfter = Infinity;
  #memoryBytes = Infinity;
  /** Files of the granted workspace by path; none without a grant. */
  #workspace;
  #workspaceIsReadOnly = false;

  // Script.

  /** Answers the next question with a text or a `Failure`. */
  answer(answer) {
    this.#answers.push(answer);
    return this;
  }

  /** Scripts the next message to the agent at work. Without one, its wait times out. */
  message(message) {
    this.#messages.push(message);
    return this;
  }

  /**
   * Scripts one start of a granted program: its output and exit. The last script also serves all
   * later starts.
   */
  program(name, { stdout = "", stderr = "", code = 0 } = {}) {
    this.#programs.set(name, [...(this.#programs.get(name) ?? []), { stdout, stderr, code }]);
    return this;
  }

  /**
   * Scripts the next response: a body of text, bytes, chunks, or a value as JSON, or a function of
   * the request.
   */
  respond(response) {
    this.#responses.push(response);
    return this;
  }

  /**
   * Scripts another agent, with its outcome when called: a text, or `{ state, text, artifacts }`.
   */
  agent(name, outcome) {
    this.#agents.set(name, [...(this.#agents.get(name) ?? []), outcome]);
    return this;
  }

  /** Scripts a tool with its result. */
  tool(server, name, result) {
    this.#tools.set(`${server} ${name}`, result);
    return this;
  }

  setting(name, value) {
    this.#settings.set(name, String(value));
    return this;
  }

  /** Limits the memory in bytes. */
  memoryBytes(max) {
    this.#memoryBytes = max;
    return this;
  }

  /** Grants a workspace with these files: texts or bytes by path. */
  workspace(files, { readOnly = false } = {}) {
    this.#workspace = new Map(Object.entries(files).map(([path, content]) => [path, bytesOf(content)]));
    this.#workspaceIsReadOnly = readOnly;
    return this;
  }

  /** Text of a file of the workspace; `undefined` without one. */
  workspaceFile(path) {
    const bytes = this.#workspace?.get(path);
    return bytes && new TextDecoder().decode(bytes);
  }

  /**
   * Makes a rule of the operator for the requests whose facts, as JSON, contain this text: it allows
   * them, or denies them with a reason.
   */
  rule(part, { denied } = {}) {
    this.#rules.push({ part, denied });
    return this;
  }

  /** Cancels the task once `events` events were emitted. */
  cancelAfter(events) {
    this.#cancelAfter = events;
    return this;
  }

  // Run.

  /** Runs a task of a text or a message to its end. A `Failure` is thrown. */
  async run(definition, content = "", { live = true, history = [], workingDirectory } = {}) {
    defineAgent(definition);
    const message = messageToContract(content, "user");
    const task = {
      id: "task",
      contextId: "context",
      message,
      history: history.map((item) => messageToContract(item, "user")),
      workingDirectory: workingDirectory ?? null,
      metadata: null,
    };
    return Outcome.fromContract(await runTask(definition, this.#host(), task, live));
  }

  async health(definition) {
    return checkHealth(definition, this.#host());
  }

  card(definition) {
    return JSON.parse(cardJson(defineAgent(definition)));
  }

  /** Texts of the emitted statuses. */
  get said() {
    return this.events.filter(({ type, text }) => type === "status" && text !== undefined).map(({ text }) => text);
  }

  /** Final text of an artifact, as a client has it. */
  artifact(id) {
    let text;
    for (const event of this.events) {
      if (event.type === "artifact" && event.artifact.id === id) text = (event.append ? (text ?? "") : "") + event.artifact.text;
    }
    return text;
  }

  get #isCancelled() {
    return this.events.length >= this.#cancelAfter;
  }

  #host() {
    const checked = (work) => (...args) => (this.#isCancelled ? fail("cancelled") : work(...args));
    const emit = checked(({ tag, val }) => {
      if (tag === "artifact") {
        this.events.push({ type: "artifact", artifact: artifactFromContract(val.artifact), append: val.append, lastChunk: val.lastChunk });
        return;
      }
      const message = val.message ? Message.fromContract(val.message) : undefined;
      const metadata = val.metadata === null ? undefined : JSON.parse(val.metadata);
      this.events.push({ type: "status", state: val.state, text: message?.text, message, metadata });
    });
    const ask = checked((need, prompt) => {
      this.asked.push(Message.fromContract(prompt));
      if (this.#answers.length === 0) denied(`the answer to \`${Message.fromContract(prompt).text}\``);
      const answer = this.#answers.shift();
      if (answer instanceof Failure) throw answer;
      return messageToContract(answer, "user");
    });
    const ruleFor = (facts) => this.#rules.find(({ part }) => facts.includes(part));
    const requestPermission = checked((facts, prompt) => {
      const rule = ruleFor(facts);
      if (rule) return rule.denied === undefined ? { tag: "allowed", val: rule.part } : { tag: "denied", val: rule.denied };
      return { tag: "pending", val: ask("input", prompt) };
    });
    const permissionDenial = checked((facts) => ruleFor(facts)?.denied ?? null);
    const Question = { answer: (answer) => answer };
    const nextMessage = checked(() => {
      if (this.#messages.length === 0) fail("timeout", "no message came");
      return messageToContract(this.#messages.shift(), "user");
    });
    const host = this;
    const used = () => [...this.memory].reduce((sum, [key, value]) => sum + key.length + value.length, 0);
    return {
      ready: async () => {},
      idle: async () => {},
      sleep: async () => this.#isCancelled && fail("cancelled"),
      isConcurrent: () => false,
      tasks: {
        emit,
        ask,
        requestPermission,
        permissionDenial,
        Question,
        nextMessage,
        cancelled: () => this.#isCancelled,
        extensions: () => [],
        acceptedOutputModes: () => [],
      },
      log: { log: (level, text) => this.logs.push({ level, text }) },
      settings: { get: (name) => this.#settings.get(name) ?? null },
      memory: {
        get: checked((key) => (this.memory.has(key) ? bytesOf(this.memory.get(key)) : null)),
        set: checked((key, value) => {
          const previous = this.memory.get(key);
          this.memory.set(key, new TextDecoder().decode(value));
          if (used() <= this.#memoryBytes) return;
          previous === undefined ? this.memory.delete(key) : this.memory.set(key, previous);
          fail("exhausted", `remember ${value.length} bytes: ${this.#memoryBytes} are granted`);
        }),
        delete: checked((key) => void this.memory.delete(key)),
        keys: checked((prefix) => [...this.memory.keys()].filter((key) => key.startsWith(prefix)).sort()),
      },
      contextMemory: this.mind.contract(checked),
      files: {
        put: checked((name, bytes) => {
          this.files.push({ name, bytes });
          return `/files/${name}`;
        }),
      },
      workspace: this.#workspaceHost(checked),
      process: {
        fingerprint: checked((program) => (this.#programs.has(program) ? `fingerprint of ${program}` : denied(`run \`${program}\``))),
        Child: {
          spawn: checked((command) => {
            const scripts = host.#programs.get(command.program);
            if (!scripts) denied(`run \`${command.program}\``);
            const script = scripts.length > 1 ? scripts.shift() : scripts[0];
            const started = { ...command, env: Object.fromEntries(command.env), stdin: "" };
            host.spawned.push(started);
            const outputs = [
              ...(script.stdout.length ? [{ tag: "stdout", val: bytesOf(script.stdout) }] : []),
              ...(script.stderr.length ? [{ tag: "stderr", val: bytesOf(script.stderr) }] : []),
              { tag: "exited", val: { tag: "code", val: script.code } },
            ];
            return {
              next: checked(() => outputs.shift()),
              writeStdin: checked((bytes) => void (started.stdin += new TextDecoder().decode(bytes))),
              closeStdin() {},
              interrupt() {},
              kill() {},
            };
          }),
        },
      },
      http: {
        Exchange: {
          send: checked((request) => {
            const recorded = { ...request, headers: Object.fromEntries(request.headers), body: new TextDecoder().decode(request.body) };
            this.requests.push(recorded);
            if (this.#responses.length === 0) denied(`${request.method} ${request.url}`);
            let response = this.#responses.shift();
            if (typeof response === "function") response = response(recorded);
            if (response instanceof Failure) throw response;
            const { status = 200, headers = {}, body = "", json, pieces } =
              typeof response === "string" || response instanceof Uint8Array ? { body: response } : response;
            const rest = (pieces ?? [json === undefined ? body : JSON.stringify(json)]).map(bytesOf);
            return { status: () => status, headers: () => Object.entries(headers), next: checked(() => rest.shift() ?? null) };
          }),
        },
      },
      delegate: {
        agents: checked(() => JSON.stringify([...this.#agents.keys()].map((name) => ({ agentId: name, name })))),
        find: checked((query) => {
          this.searches.push(JSON.parse(query));
          const matches = [...this.#agents.keys()].map((name) => ({ id: name, card: { agentId: name, name }, score: 1, why: [] }));
          return JSON.stringify({ agents: matches });
        }),
        Options: class {
          constructor() {
            return new Proxy({}, { get: (target, name) => (name in target ? target[name] : (value) => void (target[name] = value)) });
          }
        },
        Call: { startWith: checked((agent, message, options) => this.#start(agent, message, options, checked)) },
      },
      steps: {
        Step: {
          begin: checked((key) => ({ key, kept: () => this.steps.get(key) ?? null })),
          end: (step, result) => void (result === "" || this.steps.set(step.key, result)),
        },
      },
      tools: {
        list: checked(() => {
          const tools = [...this.#tools.keys()].map((key) => key.split(" "));
          return JSON.stringify(tools.map(([server, name]) => ({ server, name, inputSchema: {} })));
        }),
        call: checked((server, name, args) => {
          this.toolCalls.push({ server, name, args: JSON.parse(args) });
          const result = this.#tools.get(`${server} ${name}`);
          return result === undefined ? denied(`call \`${name}\` of \`${server}\``) : JSON.stringify(result);
        }),
      },
    };
  }

  #workspaceHost(checked) {
    const files = (action) => this.#workspace ?? denied(action);
    const missing = (action) => fail("invalid", `${action}: there is no such file in the workspace`);
    return {
      read: checked((path) => files(`read \`${path}\``).get(path) ?? missing(`read \`${path}\``)),
      write: checked((path, bytes) => {
        const workspaceFiles = files(`write \`${path}\``);
        if (this.#workspaceIsReadOnly) fail("denied", `write \`${path}\`: the workspace is read-only`);
        workspaceFiles.set(path, bytes);
      }),
      list: checked((path) => {
        const folder = path === "" ? "" : `${path}/`;
        const paths = [...files(`list \`${path}\``).keys()].filter((file) => file.startsWith(folder));
        if (paths.length === 0 && folder !== "") missing(`list \`${path}\``);
        return [...new Set(paths.map((file) => file.slice(folder.length).replace(/\/.*/, "/")))];
      }),
    };
  }

  #start(agent, message, options, checked) {
    const outcomes = this.#agents.get(agent);
    if (!outcomes) denied(`call \`${agent}\``);
    const outcome = outcomes.length > 1 ? outcomes.shift() : outcomes[0];
    this.calls.push({ agent, message: Message.fromContract(message), options });
    const send = checked((message) => void this.sent.push({ agent, message: Message.fromContract(message) }));
    const { state = "completed", text, artifacts = {} } = typeof outcome === "string" ? { text: outcome } : outcome;
    const updates = Object.entries(artifacts).map(([id, content]) => {
      const artifact = { id, name: null, description: null, parts: messageToContract(content).parts, extensions: [], metadata: null };
      return { tag: "event", val: { tag: "artifact", val: { artifact, append: false, lastChunk: true } } };
    });
    updates.push({ tag: "finished", val: { tag: "status", val: statusToContract(state, text) } });
    return { next: checked(() => updates.shift()), taskId: () => `task-of-${agent}`, answer() {}, send, cancel() {} };
  }
}

export { End, Failure };
