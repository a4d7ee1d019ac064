// The two acts, in plain words.

import { Chat } from './turns.mjs';
import { listSwitches } from './programs.mjs';
import { bad, bold, dim, duration, good, heading, moment, say } from './screen.mjs';

/** How long Baton has to put a conversation right before the demo calls it a failure. */
const PATIENCE = 10_000;

const nameOf = (agents, id) => agents.find((agent) => agent.id === id)?.name ?? id;

/** Tells each write of a turn as it happens. */
function telling(user, agent, to) {
  const told = {
    message: `${user.name} writes a message`,
    start: `LibreChat starts the turn: the conversation is with ${bold(agent.name)}`,
    tool: `${agent.name} calls switch_agent: the conversation is with ${bold(to?.name)}`,
    response: `the answer of ${agent.name} is saved`,
    stopped: `${user.name} stops the turn; the answer is saved unfinished, and no end follows`,
    end: `LibreChat ends the turn and saves what the client had asked for: ${bold(agent.name)}`,
  };
  return (millis, what) => moment(millis, told[what]);
}

/** Answers with the chat, whose switch is lost. */
export async function withoutBaton({ steps, observer, users: [ann], agents }) {
  const [reception, billing] = agents;
  heading('Without Baton');
  const chat = new Chat(steps, ann);
  await chat.turn(reception);
  const saved = await chat.turn(reception, { to: billing, note: telling(ann, reception, billing) });
  await observer.catchUp(chat.conversation, saved);
  const stands = observer.agent(chat.conversation);
  say();
  say(`  The conversation is with ${bad(nameOf(agents, stands))}. ${bad('The switch is lost')}: ${ann.name}'s next message goes to`);
  say(`  Reception again.`);
  return chat;
}

/** `lost`: the chat that was left with the wrong agent. Whether all went well. */
export async function withBaton(scene, baton, lost) {
  const { uri, observer, users, agents, steps } = scene;
  const [ann, ben, cleo, dan] = users;
  const [reception, billing, repairs] = agents;
  heading('With Baton beside it');
  say(dim(`  baton run (process ${baton.pid}), set up with LibreChat's MONGO_URI and the name of the MCP server whose`));
  say(dim('  switch_agent tool it may trust; its log: .cache/demo/baton.log'));
  const outcomes = new Map();

  /** Plays a turn, waits for the outcome, and says what it was. */
  async function play(chat, user, { told = '', to, expected = to, ...how }) {
    say();
    say(`  ${told}`);
    const note = telling(user, how.agent ?? reception, to);
    const mark = observer.mark(chat.conversation);
    const saved = await chat.turn(how.agent ?? reception, { to, note, ...how });
    await observer.catchUp(chat.conversation, saved);
    const right = await observer.comesTo(chat.conversation, expected.id, PATIENCE);
    const stands = nameOf(agents, observer.agent(chat.conversation));
    outcomes.set(chat, expected);
    if (!right) {
      say(`  ${bad(`${user.name}'s conversation is with ${stands}; it should be with ${expected.name}.`)}`);
      return;
    }
    const wrong = observer.wrongFor(chat.conversation, expected.id, mark);
    const cost = wrong > 0 ? `the wrong agent stood for ${duration(wrong)} in all` : 'the wrong agent never stood';
    say(`  ${good(`${user.name}'s conversation is with ${stands}`)}: ${cost}.`);
  }

  say();
  const found = await observer.comesTo(lost.conversation, billing.id, PATIENCE);
  outcomes.set(lost, billing);
  if (found) {
    say(`  It has looked through the recent messages and found ${ann.name}'s switch, made while it was not there:`);
    say(`  ${good(`${ann.name}'s conversation is with ${billing.name}`)} after all.`);
  } else {
    say(`  ${bad(`It has not found ${ann.name}'s switch, made while it was not there.`)}`);
  }

  const chats = [ben, cleo, dan].map((user) => new Chat(steps, user));
  const [bens, cleos, dans] = chats;
  for (const chat of chats) {
    await chat.turn(reception);
  }
  await play(bens, ben, { told: `The same turn, now ${ben.name}'s.`, to: billing });
  await play(cleos, cleo, {
    told: `${cleo.name}'s model is fast: LibreChat's first write lands after the tool's and overwrites it.`,
    to: repairs,
    lateStart: true,
  });
  say(dim('  (A plain tool does not tell Baton; the saved answer does. Baton\'s own tool would have told it at once.)'));
  await play(dans, dan, {
    told: `${dan.name} stops the turn.`,
    to: billing,
    stopped: true,
    lateStart: true,
  });
  await play(bens, ben, {
    told: `${ben.name} now picks Repairs in the menu: a later choice of the user's always wins.`,
    agent: repairs,
    expected: repairs,
  });
  const nobody = { id: 'agent_nobody', name: 'Nobody' };
  await play(cleos, cleo, {
    told: `${cleo.name} asks Repairs, which switches to an agent that does not exist.`,
    agent: repairs,
    to: nobody,
    expected: repairs,
  });

  heading('What Baton has noted (baton switches)');
  for (const record of (await listSwitches(uri)).reverse()) {
    const user = users.find(({ _id }) => _id.toHexString() === record.user).name;
    const way = `${nameOf(agents, record.from_agent)} → ${nameOf(agents, record.to_agent)}`;
    const why = record.detail ? `: ${record.detail}` : '';
    const repairs = record.repairs > 0 ? `, put back ${record.repairs === 1 ? 'once' : `${record.repairs} times`}` : '';
    say(`  ${user.padEnd(5)} ${way}`);
    say(`        ${dim(`${record.status}${repairs}${why}`)}`);
  }

  heading('And the tab that is open all the while?');
  say(`  ${dan.name}'s browser still shows Reception. The stock client keeps the agent that it last sent, so the next`);
  say(`  message from that open tab asks for Reception, and LibreChat makes it Reception again: to the database`);
  say(`  that is a later choice of ${dan.name}'s. After a reload, or away and back in the sidebar, the tab sends`);
  say(`  Billing. With Baton's gateway before LibreChat the open tab learns of the switch by itself.`);
  say();
  // Once more, and of all: nothing may have moved since.
  const kept = [...outcomes].every(([chat, expected]) => observer.agent(chat.conversation) === expected.id);
  say(kept ? good('  Every conversation is with the right agent.') : bad('  Not every conversation is with the right agent.'));
  return kept;
}
