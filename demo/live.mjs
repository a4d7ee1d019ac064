// The live view: users who talk to agents at random, a line a turn, until Ctrl-C.

import { setTimeout as pause } from 'node:timers/promises';
import { Chat } from './turns.mjs';
import { bad, bold, dim, duration, good, heading, say } from './screen.mjs';

const PATIENCE = 10_000;
const pick = (list) => list[Math.floor(Math.random() * list.length)];

export async function live({ steps, observer, users, agents }, signal) {
  heading('Live: every line is a turn. Ctrl-C ends it.');
  const count = { turns: 0, switches: 0, lost: 0, worst: 0 };
  await Promise.all(users.map((user) => talk(user)));
  say();
  say(`  ${count.turns} turns, ${count.switches} switches, ${count.lost} lost; the wrong agent stood for ${duration(count.worst)} at most.`);

  async function talk(user) {
    let chat = new Chat(steps, user);
    let agent = agents[0];
    while (!signal.aborted) {
      await pause(300 + Math.random() * 2500, undefined, { signal }).catch(() => {});
      if (signal.aborted) {
        return;
      }
      if (Math.random() < 0.1) {
        chat = new Chat(steps, user);
        agent = agents[0];
      }
      agent = await turn(user, chat, agent);
    }
  }

  /** One turn; the agent that the user's client will ask for next. */
  async function turn(user, chat, agent) {
    const to = Math.random() < 0.5 ? pick(agents.filter((other) => other !== agent)) : undefined;
    const lateStart = to !== undefined && Math.random() < 0.4;
    const stopped = to !== undefined && Math.random() < 0.1;
    const mark = observer.mark(chat.conversation);
    // A new conversation is not there for a plain tool before LibreChat has begun it.
    const saved = await chat.turn(agent, { to, stopped, lateStart: lateStart && observer.agent(chat.conversation) });
    await observer.catchUp(chat.conversation, saved);
    const expected = to ?? agent;
    const right = await observer.comesTo(chat.conversation, expected.id, PATIENCE);
    const wrong = observer.wrongFor(chat.conversation, expected.id, mark);
    count.turns += 1;
    count.switches += to ? 1 : 0;
    count.lost += right ? 0 : 1;
    count.worst = Math.max(count.worst, wrong);
    const how = `${stopped ? ', stopped' : ''}${lateStart ? ', a fast model' : ''}`;
    const what = to ? `${agent.name} → ${bold(to.name)}${how}` : `${agent.name} answers`;
    const outcome = to ? (right ? good(`kept, wrong for ${duration(wrong)}`) : bad('lost')) : '';
    say(`  ${dim(new Date().toTimeString().slice(0, 8))}  ${user.name.padEnd(5)} ${what}  ${outcome}`);
    return expected;
  }
}
