// LibreChat's own data layer (the package its server uses), connected to one database.

import { fileURLToPath } from 'node:url';

// Its logger opens files and the console as soon as it is imported; neither is ours to fill.
process.env.LIBRECHAT_LOG_DIR ??= fileURLToPath(new URL('node_modules/.cache/logs', import.meta.url));
process.env.CONSOLE_LOG_LEVEL ??= 'error';

const { Mongoose, mongo } = await import('mongoose').then((module) => module.default);
const { createMethods, createModels, tenantStorage } = await import('@librechat/data-schemas');

/** The driver that LibreChat uses. */
export const { MongoClient, BSON } = mongo;

/** The collections that Baton reads, whose real indexes matter. */
const INDEXED = ['Conversation', 'Message', 'Agent', 'User', 'AclEntry', 'Group', 'Role', 'SystemGrant'];

/**
 * Connects to `uri`. LibreChat itself has one connection a process; a Mongoose of its own for each
 * database lets one process serve many tests.
 *
 * Its hundred and more indexes are not built unless `buildIndexes` asks for those of `INDEXED`: in
 * a database per test they cost more than the tests.
 */
export async function connect(uri) {
  const mongoose = new Mongoose();
  mongoose.set('autoIndex', false);
  mongoose.set('autoCreate', false);
  const models = createModels(mongoose);
  await mongoose.connect(uri, { maxPoolSize: 20 });
  return {
    mongoose,
    models,
    methods: createMethods(mongoose),
    /** Runs `work` as a request of a user of that tenant, if any. */
    inTenant: (tenantId, work) => (tenantId ? tenantStorage.run({ tenantId }, work) : work()),
    async buildIndexes() {
      for (const name of INDEXED) {
        await models[name].createIndexes();
      }
    },
    close: () => mongoose.disconnect(),
  };
}
