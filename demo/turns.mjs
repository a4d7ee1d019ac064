// Turns as LibreChat writes them, with the pauses that were measured between its writes.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { NO_PARENT } from '../tests/librechat/turn.mjs';

/** The MCP server whose plain tool switches: one of an operator's own, which Baton is told to trust. */
export const SERVER = 'switcher';

/** Milliseconds after the user's message. */
const MEASURED = { start: 20, tool: 25, response: 80, end: 95, lateStart: 40 };

const answer = (text) => ({ type: 'text', text });

function switchCall(turn, target) {
  const output = { action: 'switch_agent', agent_id: target.id, conversation_id: turn.conversation, status: 'success' };
  return {
    type: 'tool_call',
    tool_call: {
      id: `call_${randomUUID()}`,
      name: `switch_agent_mcp_${SERVER}`,
      args: JSON.stringify({ agent_id: target.id }),
      type: 'tool_call',
      progress: 1,
      output: JSON.stringify(output),
    },
  };
}

export class Chat {
  constructor(steps, user) {
    this.steps = steps;
    this.user = user;
    this.conversation = randomUUID();
    this.last = NO_PARENT;
  }

  begin(agent) {
    const turn = {
      user: this.user._id.toHexString(),
      conversation: this.conversation,
      userMessage: randomUUID(),
      response: randomUUID(),
      parent: this.last,
      agent: agent.id,
    };
    this.last = turn.response;
    return turn;
  }

  /**
   * One turn with `agent`, as the client asked. `to`: the agent that it hands over to by a plain
   * tool. `lateStart`: START lands after the tool. `stopped`: the user stops the turn after the tool.
   * `note` is told of each write.
   *
   * Answers with the date of LibreChat's last write to the conversation.
   */
  async turn(agent, { to, lateStart = false, stopped = false, note = () => {} } = {}) {
    const { steps } = this;
    const turn = this.begin(agent);
    const began = performance.now();
    const at = async (millis) => pause(Math.max(0, began + millis - performance.now()));
    const noted = (what) => note(performance.now() - began, what);
    let saved;

    await steps.saveUserMessage(turn);
    noted('message');
    const start = async (millis) => {
      await at(millis);
      saved = await steps.start(turn);
      noted('start');
    };
    if (!lateStart) {
      await start(MEASURED.start);
    }
    if (to) {
      await at(MEASURED.tool);
      await steps.toolWrites(turn, to.id);
      noted('tool');
    }
    if (lateStart) {
      await start(MEASURED.lateStart);
    }
    await at(MEASURED.response);
    const content = to ? [switchCall(turn, to), answer(`Over to ${to.name}.`)] : [answer(`${agent.name} answers.`)];
    const response = { content, unfinished: stopped };
    await steps.saveResponse(turn, response);
    noted(stopped ? 'stopped' : 'response');
    if (!stopped) {
      await at(MEASURED.end);
      saved = await steps.end(turn);
      noted('end');
      await steps.touchUserMessage(turn);
      await steps.touchResponse(turn, response);
    }
    return saved.updatedAt;
  }
}
