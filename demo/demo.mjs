// The demonstration: a handoff that LibreChat loses, the same with Baton beside it, and then a
// live view for as long as somebody watches.

import { connect, MongoClient } from '../tests/librechat/librechat.mjs';
import { peopleOf } from '../tests/librechat/people.mjs';
import { stepsOf } from '../tests/librechat/turn.mjs';
import { live } from './live.mjs';
import { observe } from './observer.mjs';
import { startBaton, startMongod } from './programs.mjs';
import { attended, say } from './screen.mjs';
import { withBaton, withoutBaton } from './story.mjs';

const opened = [];
const close = async () => {
  for (const resource of opened.splice(0).reverse()) {
    await resource();
  }
};

const interrupted = new AbortController();
let watched = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A second one does not wait for anything; the system ends the rest.
  process.on(signal, () => (interrupted.signal.aborted ? process.exit(130) : interrupted.abort()));
}

/** Resolves when the demo is interrupted; not in the live view, which ends by itself then. */
const broken = new Promise((resolve) => {
  interrupted.signal.addEventListener('abort', () => {
    if (!watched) {
      // A turn may be under way; what it says while its database goes away helps nobody.
      process.stdout.write = () => true;
      resolve('broken');
    }
  });
});

async function stage() {
  const mongod = await startMongod(MongoClient);
  opened.push(mongod.stop);
  const librechat = await connect(mongod.uri);
  opened.push(librechat.close);
  const observer = await observe(librechat.mongoose.connection.db);
  opened.push(observer.close);

  const people = peopleOf(librechat);
  const users = [];
  for (const name of ['Ann', 'Ben', 'Cleo', 'Dan']) {
    users.push(await people.user({ name }));
  }
  const agents = [];
  for (const name of ['Reception', 'Billing', 'Repairs']) {
    const agent = await people.agent({ name, author: users[0]._id });
    await people.grant({ agent: agent.id, type: 'public' });
    agents.push(agent);
  }
  return { uri: mongod.uri, steps: stepsOf(librechat), observer, users, agents };
}

async function main() {
  say('MongoDB is a real replica set in a temporary folder; the writes are LibreChat\'s own, made by its');
  say('data layer (@librechat/data-schemas 0.0.71) in the order and with the pauses that were measured on');
  say('a real LibreChat. The demo plays the users and the models. An observer with a change stream of its');
  say('own watches which agent each conversation names.');

  const scene = await stage();
  const lost = await withoutBaton(scene);
  const baton = await startBaton(scene.uri);
  opened.push(baton.stop);
  const kept = await withBaton(scene, baton, lost);
  if (attended && kept && !interrupted.signal.aborted) {
    watched = true;
    await live(scene, interrupted.signal);
  }
  return kept;
}

let code = 0;
try {
  const outcome = await Promise.race([main(), broken]);
  code = outcome === 'broken' ? 130 : outcome ? 0 : 1;
} catch (error) {
  code = 1;
  say(`the demo failed: ${error.message}`);
}
await close();
process.exit(code);
