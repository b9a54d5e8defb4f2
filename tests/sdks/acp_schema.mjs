// Check of lines of ACP against the JSON schema that the official SDK publishes. It reads the
// keywords of that schema, and refuses a schema with any other keyword, which would check nothing.

import { readFileSync } from 'node:fs';

/** Keywords that restrict no value. A discriminator names the member that each branch checks. */
const NOTES = /^(x-.*|\$schema|\$defs|title|description|default|discriminator|format)$/;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

const TYPES = {
  null: (it) => it === null,
  boolean: (it) => typeof it === 'boolean',
  string: (it) => typeof it === 'string',
  number: (it) => typeof it === 'number',
  integer: Number.isInteger,
  array: Array.isArray,
  object: isObject,
};

/** Reason of a value that is another constant. */
const OTHER_TAG = 'is not';

/** A fault: the path of the value, and the reason. `undefined` means that a value is valid. */
const fault = (at, why) => ({ at, why });

/** First fault of the items; `undefined` if all are valid. */
function firstOf(items, check) {
  for (const item of items) {
    const found = check(item);
    if (found) return found;
  }
  return undefined;
}

/** Each checks one keyword: `(operand, value, path, schema, check)`. */
const KEYWORDS = {
  $ref: (ref, value, at, schema, check) => check({ definition: ref.replace('#/$defs/', '') }, value, at),
  type: (types, value, at) => {
    const fits = [types].flat().some((type) => TYPES[type](value));
    return fits ? undefined : fault(at, `is no ${[types].flat().join(' or ')}`);
  },
  enum: (values, value, at) => (values.includes(value) ? undefined : fault(at, `is none of ${values.join(', ')}`)),
  const: (wanted, value, at) => (value === wanted ? undefined : fault(at, `${OTHER_TAG} ${wanted}`)),
  minimum: (min, value, at) => (typeof value === 'number' && value < min ? fault(at, `is below ${min}`) : undefined),
  maximum: (max, value, at) => (typeof value === 'number' && value > max ? fault(at, `is above ${max}`) : undefined),
  minLength: (min, value, at) =>
    typeof value === 'string' && [...value].length < min ? fault(at, `is shorter than ${min}`) : undefined,
  required: (names, value, at) => {
    const missing = isObject(value) ? names.find((name) => !Object.hasOwn(value, name)) : undefined;
    return missing === undefined ? undefined : fault(`${at}/${missing}`, 'is missing');
  },
  properties: (schemas, value, at, schema, check) => {
    const present = isObject(value) ? Object.keys(schemas).filter((name) => Object.hasOwn(value, name)) : [];
    return firstOf(present, (name) => check(schemas[name], value[name], `${at}/${name}`));
  },
  additionalProperties: (of, value, at, { properties = {} }, check) => {
    const more = isObject(value) ? Object.keys(value).filter((name) => !Object.hasOwn(properties, name)) : [];
    return firstOf(more, (name) => check(of, value[name], `${at}/${name}`));
  },
  // The schema has it as `true` only, which allows any member.
  unevaluatedProperties: (of, value, at, schema, check) => check(of, value, at),
  items: (of, value, at, schema, check) =>
    Array.isArray(value) ? firstOf(value.keys(), (n) => check(of, value[n], `${at}/${n}`)) : undefined,
  allOf: (all, value, at, schema, check) => firstOf(all, (one) => check(one, value, at)),
  anyOf: (any, value, at, schema, check) => {
    const faults = any.map((one) => check(one, value, at));
    if (faults.includes(undefined)) return undefined;
    // The branch that was meant has the right tag, and fails at the deepest path.
    const rank = (it) => 2 * it.at.split('/').length + (it.why.startsWith(OTHER_TAG) ? 0 : 1);
    return faults.reduce((best, it) => (rank(it) > rank(best) ? it : best));
  },
  oneOf: (one, value, at, schema, check) => {
    const valid = one.filter((branch) => !check(branch, value, at)).length;
    if (valid > 1) return fault(at, `fits ${valid} alternatives of which it may fit one`);
    return KEYWORDS.anyOf(one, value, at, schema, check);
  },
  not: (of, value, at, schema, check) => (check(of, value, at) ? undefined : fault(at, 'is of a kind that is excluded')),
};

/** JSON schema of the protocol: reads the published file. */
export class AcpSchema {
  constructor(path) {
    this.json = JSON.parse(readFileSync(path, 'utf8'));
    /** Definitions by the side that receives the request, its method, and `params` or `result`. */
    this.methods = new Map();
    for (const [name, of] of Object.entries(this.json.$defs)) {
      if (!of['x-method']) continue;
      const member = name.endsWith('Response') ? 'result' : 'params';
      this.methods.set(`${of['x-side']} ${of['x-method']} ${member}`, name);
    }
  }

  /** Fault of a value; `undefined` if it is valid. `schema` may be a `definition` by its name. */
  check(schema, value, at) {
    if (typeof schema === 'boolean') return schema ? undefined : fault(at, 'is not allowed');
    if (schema.definition !== undefined) {
      const definition = this.json.$defs[schema.definition];
      if (!definition) throw new Error(`the schema has no definition ${schema.definition}`);
      return this.check(definition, value, at);
    }
    const check = (...of) => this.check(...of);
    return firstOf(Object.entries(schema), ([keyword, operand]) => {
      if (NOTES.test(keyword)) return undefined;
      const known = Object.hasOwn(KEYWORDS, keyword);
      if (!known) throw new Error(`the schema has the keyword ${keyword}, which is not checked`);
      return KEYWORDS[keyword](operand, value, at, schema, check);
    });
  }
}

/**
 * Check of one connection. `agent` and `client` take the bytes that each side writes, in order;
 * `faults` has the invalid lines of each side with the reasons, and `kinds` what was valid.
 */
export class ConnectionCheck {
  constructor(schema) {
    Object.assign(this, { schema, faults: { agent: [], client: [] }, kinds: new Set() });
    this.sides = { agent: side(), client: side() };
  }

  agent(bytes) {
    this.take('agent', 'client', bytes);
  }

  client(bytes) {
    this.take('client', 'agent', bytes);
  }

  take(from, to, bytes) {
    const { sides } = this;
    const lines = (sides[from].rest + sides[from].decoder.decode(bytes, { stream: true })).split('\n');
    sides[from].rest = lines.pop();
    for (const line of lines.filter((it) => it.trim())) {
      const found = this.fault(from, to, line);
      if (found) this.faults[from].push(`${found.at || 'the line'} ${found.why}: ${line}`);
    }
  }

  fault(from, to, line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (why) {
      return fault('', `is no JSON (${why.message})`);
    }
    if (!isObject(message)) return fault('', 'is no object');
    if (message.jsonrpc !== '2.0') return fault('/jsonrpc', 'is not 2.0');
    if (Object.hasOwn(message, 'method')) return this.request(from, to, message);
    return this.response(from, to, message);
  }

  request(from, to, message) {
    const { id, method, params } = message;
    const { asked } = this.sides[from];
    const isUsed = asked.has(id);
    if (Object.hasOwn(message, 'id')) asked.set(id, method);
    const name = (side) => this.schema.methods.get(`${side} ${method} params`);
    const definition = name(to) ?? name('protocol');
    if (!definition) return fault('/method', 'is no method of the other side');
    const isNotification = definition.endsWith('Notification');
    if (isNotification === Object.hasOwn(message, 'id')) {
      return fault('/id', isNotification ? 'belongs to no notification' : 'is missing');
    }
    if (!isNotification && typeof id !== 'string' && !Number.isInteger(id)) {
      return fault('/id', 'is no string or integer');
    }
    if (!isNotification && isUsed) return fault('/id', 'is that of an earlier request');
    const kind = params?.update?.sessionUpdate;
    return this.valid(definition, params, '/params', kind ? `${method} ${kind}` : method);
  }

  response(from, to, message) {
    if (!Object.hasOwn(message, 'id')) return fault('/id', 'is missing');
    const hasResult = Object.hasOwn(message, 'result');
    if (hasResult === Object.hasOwn(message, 'error')) return fault('', 'has not one of result and error');
    const method = this.sides[to].asked.get(message.id);
    // A line that could not be read is refused without its id.
    if (!method && !(message.id === null && !hasResult)) return fault('/id', 'is that of no request');
    if (!hasResult) return this.valid('Error', message.error, '/error', `${method} error`);
    const definition = this.schema.methods.get(`${from} ${method} result`);
    if (!definition) return fault('/result', `answers ${method}, which the schema does not have`);
    return this.valid(definition, message.result, '/result', `${method} result`);
  }

  valid(definition, value, at, kind) {
    const found = this.schema.check({ definition }, value, at);
    if (!found) this.kinds.add(kind);
    return found;
  }
}

/** State of one side: the decoder of its bytes, an incomplete line, and its requests by their ids. */
function side() {
  return { decoder: new TextDecoder(), rest: '', asked: new Map() };
}
