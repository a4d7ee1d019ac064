// Waiting on conditions.

import { setTimeout as pause } from 'node:timers/promises';

const DEADLINE = 30_000;

/** Asks again and again until the answer is true; fails with `what` where it never is. */
export async function until(what, condition, deadline = DEADLINE) {
  const started = Date.now();
  for (let wait = 2; !(await condition()); wait = Math.min(wait * 2, 50)) {
    if (Date.now() - started > deadline) {
      throw new Error(`in ${deadline / 1000} s it did not come about: ${what}`);
    }
    await pause(wait);
  }
}
