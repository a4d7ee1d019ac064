// Are the scripts here and of the demo sound? They parse, and the installed data layer still has what
// they call. Needs no database.

import { readdirSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'node:test';
import assert from 'node:assert/strict';

for (const folder of ['.', '../../demo/']) {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  for (const name of readdirSync(path).filter((name) => name.endsWith('.mjs'))) {
    test(`${name} parses`, () => execFileSync(process.execPath, ['--check', path + name]));
  }
}

test('the data layer has the functions that the drivers call', async () => {
  const { default: mongoose } = await import('mongoose');
  await import('./librechat.mjs');
  const { createMethods, createModels } = await import('@librechat/data-schemas');
  createModels(mongoose);
  const methods = createMethods(mongoose);
  for (const name of ['saveMessage', 'saveConvo', 'deleteConvos', 'createUser', 'createAgent', 'getAgent', 'grantPermission']) {
    assert.equal(typeof methods[name], 'function', name);
  }
});
