// The programs that the demonstration runs: MongoDB and Baton. All listen on 127.0.0.1.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { SERVER } from './turns.mjs';
import { until } from './until.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const PDEATHSIG = '/usr/bin/setpriv';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * A replica set with one member, in a temporary folder. `tests/tools/keep-mongod` holds it, and
 * ends it and removes the folder when this process ends, however it ends.
 */
export async function startMongod(MongoClient) {
  const port = await freePort();
  const settings = ['--bind_ip=127.0.0.1', '--port', port, '--nounixsocket', '--replSet=rs0', '--oplogSize=64'];
  const tuning = ['--wiredTigerCacheSizeGB=0.25', '--setParameter=shutdownTimeoutMillisForSignaledShutdown=0'];
  // A process group of its own: Ctrl-C is for the demonstration, which ends the others in order.
  const keeper = spawn(`${root}tests/tools/keep-mongod`, [process.env.MONGOD, ...settings, ...tuning], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const answers = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]();
  const { value: folder } = await answers.next();
  keeper.stdin.write('start\n');
  await answers.next();

  const direct = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`);
  const admin = direct.db('admin');
  const members = [{ _id: 0, host: `127.0.0.1:${port}` }];
  await until('the replica set is initiated', () =>
    admin.command({ replSetInitiate: { _id: 'rs0', members } }).then(() => true, () => false),
  );
  await until('MongoDB takes writes', async () => (await admin.command({ hello: 1 })).isWritablePrimary);
  await direct.close();

  return {
    folder,
    uri: `mongodb://127.0.0.1:${port}/LibreChat?replicaSet=rs0`,
    async stop() {
      keeper.stdin.end();
      await once(keeper, 'exit');
    },
  };
}

/** Baton as an operator runs it: LibreChat's MONGO_URI, whose tool to trust, and where to listen. */
export async function startBaton(uri) {
  const program = process.env.BATON;
  const listen = `127.0.0.1:${await freePort()}`;
  const folder = `${root}.cache/demo`;
  mkdirSync(folder, { recursive: true });
  const log = `${folder}/baton.log`;
  const output = openSync(log, 'w');
  // Where the system offers it, Baton ends even if this process is killed.
  const wrapper = existsSync(PDEATHSIG) ? [PDEATHSIG, '--pdeathsig', 'KILL', program] : [program];
  const [command, ...args] = [...wrapper, 'run'];
  const baton = spawn(command, args, {
    cwd: folder,
    env: { MONGO_URI: uri, BATON__SWITCH__SERVERS: SERVER, BATON__HTTP__LISTEN: listen },
    stdio: ['ignore', output, output],
    detached: true,
  });
  const ended = once(baton, 'exit');

  await until('Baton is ready', async () => {
    if (baton.exitCode !== null || baton.signalCode !== null) {
      throw new Error(`baton has ended:\n${readFileSync(log, 'utf8')}`);
    }
    return fetch(`http://${listen}/readyz`).then((answer) => answer.ok, () => false);
  });

  return {
    pid: baton.pid,
    async stop() {
      baton.kill('SIGTERM');
      await ended;
    },
  };
}

/** What Baton has noted, newest first: `baton switches`. */
export async function listSwitches(uri) {
  const list = spawn(process.env.BATON, ['switches', '--json'], {
    cwd: `${root}.cache/demo`,
    env: { MONGO_URI: uri },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const records = [];
  for await (const line of createInterface({ input: list.stdout })) {
    records.push(JSON.parse(line));
  }
  return records;
}
