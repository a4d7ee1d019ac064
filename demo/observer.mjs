// An observer of its own: a change stream that neither LibreChat nor Baton knows of. It notes which
// agent each conversation names and since when, by MongoDB's clock.

import { until } from './until.mjs';

export async function observe(database) {
  const conversations = new Map();
  const stream = database.collection('conversations').watch();

  stream.on('change', (event) => {
    const id = event.documentKey._id.toHexString();
    const changed = event.fullDocument ?? event.updateDescription?.updatedFields ?? {};
    if (event.operationType === 'insert') {
      conversations.set(id, { conversation: changed.conversationId, agents: [], saved: 0 });
    }
    const seen = conversations.get(id);
    if (changed.agent_id) {
      seen.agents.push({ agent: changed.agent_id, at: event.wallTime.getTime() });
    }
    if (changed.updatedAt) {
      seen.saved = changed.updatedAt.getTime();
    }
  });
  // A stream reports what happens after it has been opened.
  await new Promise((opened) => stream.once('resumeTokenChanged', opened));

  const of = (conversation) => [...conversations.values()].find((seen) => seen.conversation === conversation);

  return {
    agent: (conversation) => of(conversation)?.agents.at(-1)?.agent,

    /** Waits until it has seen the write that LibreChat made at `date`. */
    catchUp: (conversation, date) => until('the observer keeps up', () => of(conversation)?.saved >= date.getTime()),

    /** Waits until the conversation names `agent`; whether it came to that. */
    comesTo: (conversation, agent, deadline) =>
      until('', () => of(conversation)?.agents.at(-1)?.agent === agent, deadline).then(() => true, () => false),

    /** A point in time, for `wrongFor`: before the turn. */
    mark: (conversation) => of(conversation)?.agents.length ?? 0,

    /**
     * How long another agent stood in a turn that ends with `agent`: after it had first been named,
     * or, where it stood already, at any time since `mark`.
     */
    wrongFor(conversation, agent, mark) {
      const { agents } = of(conversation);
      const stood = agents[mark - 1]?.agent === agent;
      const first = stood ? mark : agents.findIndex((named, index) => index >= mark && named.agent === agent);
      return agents
        .slice(first, -1)
        .map((named, index) => (named.agent === agent ? 0 : agents[first + index + 1].at - named.at))
        .reduce((sum, millis) => sum + millis, 0);
    },

    close: () => stream.close(),
  };
}
