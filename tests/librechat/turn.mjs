// The writes of one turn, each a step of its own, as LibreChat's agents endpoint makes them.
//
// Order and arguments: api/app/clients/BaseClient.js (saveMessageToDatabase) and
// api/server/controllers/agents/request.js of v0.8.8-rc1; `appendMessageIds` and the title that
// leaves `updatedAt` alone are of later versions.
//
// A turn is plain data:
//   user, conversation, userMessage, response, parent: ids
//   agent: the agent that the client asked for
//   first: whether the turn begins the conversation
//   append: whether saveConvo appends the ids of messages instead of reading them all
//   temporary: whether the chat is a temporary one
//   preset: more fields of the conversation, such as `spec` and `iconURL`

export const NO_PARENT = '00000000-0000-0000-0000-000000000000';

export function stepsOf({ mongoose, models, methods }) {
  const context = ({ user, temporary = false }) => ({ userId: user, isTemporary: temporary });

  const userMessage = (turn) => ({
    messageId: turn.userMessage,
    conversationId: turn.conversation,
    parentMessageId: turn.parent ?? NO_PARENT,
    sender: 'User',
    text: turn.text ?? 'What a user says',
    isCreatedByUser: true,
    tokenCount: 6,
  });

  const response = (turn, { content, unfinished = false, model }) => ({
    messageId: turn.response,
    conversationId: turn.conversation,
    parentMessageId: turn.userMessage,
    sender: 'Agent',
    model: model ?? turn.agent,
    endpoint: 'agents',
    text: '',
    content,
    attachments: [],
    isCreatedByUser: false,
    tokenCount: 14,
    unfinished,
  });

  // saveMessage answers with the message as it is now; its `_id` is what gets appended.
  async function appended(turn, messageId) {
    if (!turn.append) {
      return {};
    }
    const message = await models.Message.findOne({ messageId, user: turn.user }, '_id').lean();
    return { appendMessageIds: message ? [message._id] : [] };
  }

  async function saveConvo(turn, fields, metadata) {
    return methods.saveConvo(context(turn), { conversationId: turn.conversation, ...fields }, metadata);
  }

  const modelFields = (turn) => ({
    endpoint: 'agents',
    agent_id: turn.agent,
    resendFiles: true,
    maxContextTokens: 30400,
    ...turn.preset,
  });

  // What the client no longer sends is removed from the conversation, `spec` and `iconURL` included.
  async function unset(turn) {
    const current = await models.Conversation.findOne({ conversationId: turn.conversation, user: turn.user }).lean();
    const stale = ['spec', 'iconURL', 'model'].filter((key) => current?.[key] != null && !turn.preset?.[key]);
    return { existing: current != null, unsetFields: Object.fromEntries(stale.map((key) => [key, 1])) };
  }

  return {
    /** U is saved. */
    saveUserMessage: (turn) =>
      methods.saveMessage(context(turn), { ...userMessage(turn), endpoint: 'agents', unfinished: false }),

    /** START. Not awaited by LibreChat, so it may come after the tool and even after R. */
    async start(turn) {
      const { existing, unsetFields } = await unset(turn);
      const metadata = { ...(await appended(turn, turn.userMessage)), unsetFields };
      if (!existing) {
        metadata.createdAtOnInsert = turn.createdAt ?? new Date();
      }
      return saveConvo(turn, modelFields(turn), metadata);
    },

    /** A plain `switch_agent` tool: writes into the document behind LibreChat's back. */
    async toolWrites(turn, agent) {
      const { conversation: conversationId, user } = turn;
      const done = await models.Conversation.collection.updateOne({ conversationId, user }, { $set: { agent_id: agent } });
      return { matched: done.matchedCount, modified: done.modifiedCount };
    },

    /** R is saved: `content` as the model made it, `unfinished` where the user stopped or left. */
    saveResponse: (turn, saved) => methods.saveMessage(context(turn), response(turn, saved)),

    /** END. */
    async end(turn) {
      return saveConvo(turn, { ...modelFields(turn), files: [] }, await appended(turn, turn.response));
    },

    /** U is saved once more, which changes its `updatedAt` alone. */
    touchUserMessage: (turn) => methods.saveMessage(context(turn), userMessage(turn)),

    /** R is saved once more. */
    touchResponse: (turn, saved) => methods.saveMessage(context(turn), response(turn, saved)),

    /** The title, which a model finds in the first turn. */
    title: (turn, title) =>
      saveConvo(turn, { title }, { noUpsert: true, ...(turn.append && { appendMessageIds: [], preserveUpdatedAt: true }) }),

    /** The user renames the conversation: the same write at any time, from another request. */
    rename: (turn, title) =>
      methods.saveConvo({ userId: turn.user }, { conversationId: turn.conversation, title }, { context: 'rename' }),

    /** The user deletes the conversation. */
    remove: (turn) => methods.deleteConvos(turn.user, { conversationId: turn.conversation }),
  };
}
