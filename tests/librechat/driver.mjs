// Serves LibreChat's data layer to tests in other languages: a request a line on standard input,
// an answer a line on standard output, both EJSON. Ends when its input does.
//
//   {"id": 1, "uri": "mongodb://…", "call": "saveConvo", "args": […]}   a function of createMethods
//   {"id": 2, "uri": "mongodb://…", "step": "start", "args": [turn]}    a write of a turn
//   {"id": 3, "uri": "mongodb://…", "make": "agent", "args": […]}       users, agents, grants
//   {"id": 4, "uri": "mongodb://…", "indexes": true}                    builds the real indexes
//   → {"id": 1, "result": …} or {"id": 1, "error": "…"}
//
// `"tenant": "…"` on any of them makes it a request of a user of that tenant.

import { createInterface } from 'node:readline';

// Standard output carries answers alone; whatever LibreChat logs goes to standard error.
const answer = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

const { BSON, connect } = await import('./librechat.mjs');
const { peopleOf } = await import('./people.mjs');
const { stepsOf } = await import('./turn.mjs');
const { EJSON } = BSON;

const connections = new Map();

function connection(uri) {
  if (!connections.has(uri)) {
    const opened = connect(uri).then((librechat) => ({
      ...librechat,
      steps: stepsOf(librechat),
      people: peopleOf(librechat),
    }));
    connections.set(uri, opened);
  }
  return connections.get(uri);
}

async function perform({ uri, tenant, call, step, make, indexes, args = [] }) {
  const librechat = await connection(uri);
  if (indexes) {
    return librechat.buildIndexes();
  }
  const [functions, name] = call ? [librechat.methods, call] : step ? [librechat.steps, step] : [librechat.people, make];
  if (typeof functions[name] !== 'function') {
    throw new Error(`LibreChat's data layer has no ${name}`);
  }
  return librechat.inTenant(tenant, () => functions[name](...args));
}

/** Mongoose's documents as plain ones. */
function plain(value) {
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  return typeof value?.toObject === 'function' ? value.toObject() : value;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...request } = EJSON.parse(line);
  perform(request)
    .then((result) => ({ id, result: plain(result) ?? null }))
    .catch((error) => ({ id, error: error.stack }))
    .then((reply) => answer(`${EJSON.stringify(reply)}\n`));
}

// No farewell to the server: it may be gone by now, and nobody waits for an answer.
process.exit(0);
