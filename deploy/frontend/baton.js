/**
 * Baton for front ends of one's own: reads the events of a LibreChat turn, notices where an agent
 * switched the conversation, has the switch made permanent, and tells the page who answers now.
 *
 * No dependencies. Types are in baton.d.ts.
 */

const TOOL = 'switch_agent';
const MCP = '_mcp_';
/** These statuses may be another the next time; the rest are final. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const FIRST_WAIT = 250;
const LONGEST_WAIT = 8000;

/** A switch that was not made permanent. */
export class BatonError extends Error {
  constructor(message, { status, cause } = {}) {
    super(message, { cause });
    this.name = 'BatonError';
    this.status = status;
  }
}

export class Baton {
  #options;
  #active = new Map();
  #listeners = new Set();

  constructor(options = {}) {
    this.#options = { url: '', token: () => undefined, tool: TOOL, servers: null, attempts: 6, ...options };
  }

  /** The agent that answers in the conversation now, as far as it is known here. */
  activeAgent(conversationId) {
    return this.#active.get(conversationId);
  }

  /** Calls `listener` whenever another agent is active; what it returns ends that. */
  onActive(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The page knows who answers: it has begun a conversation, or the user has chosen. */
  setActive(conversationId, agentId) {
    this.#tell({ conversationId, agentId, reason: 'page' });
  }

  /**
   * Yields the events of a turn. When the stream has closed, however it closed, the turn's last
   * switch is made permanent before the loop over it ends.
   */
  async *events(response, { conversationId, signal } = {}) {
    const turn = { conversationId, agentId: undefined };
    try {
      for await (const event of readEvents(response)) {
        this.#note(turn, event.data);
        yield event;
      }
    } finally {
      if (turn.agentId && turn.conversationId) {
        await this.makePermanent(turn.conversationId, turn.agentId, { signal });
      }
    }
  }

  /** Has the conversation's agent set, and tries again where that may help. */
  async makePermanent(conversationId, agentId, { signal } = {}) {
    const { attempts } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#patch(conversationId, agentId, signal);
      if (outcome.done) {
        this.#tell({ conversationId, agentId, reason: 'switch' });
        return;
      }
      if (!outcome.passing || attempt >= attempts || signal?.aborted) {
        throw outcome.error;
      }
      await sleep(outcome.wait ?? backoff(attempt), signal);
    }
  }

  async #patch(conversationId, agentId, signal) {
    const { url, token } = this.#options;
    const send = this.#options.fetch ?? globalThis.fetch;
    try {
      const bearer = await token();
      const response = await send(`${url}/api/convos/${encodeURIComponent(conversationId)}`, {
        method: 'PATCH',
        signal,
        credentials: 'include',
        headers: {
          'Content-Type': 'application/json',
          ...(bearer && { Authorization: `Bearer ${bearer}` }),
        },
        body: JSON.stringify({ agent_id: agentId }),
      });
      const body = await response.json().catch(() => ({}));
      if (response.ok && body.success) {
        return { done: true };
      }
      const { status } = response;
      const seconds = Number(response.headers.get('Retry-After'));
      return {
        error: new BatonError(body.error ?? `HTTP ${status}`, { status }),
        passing: PASSING.has(status),
        wait: seconds > 0 ? seconds * 1000 : undefined,
      };
    } catch (cause) {
      return { error: new BatonError('Baton cannot be reached', { cause }), passing: true };
    }
  }

  #note(turn, data) {
    if (data === null || typeof data !== 'object') {
      return;
    }
    turn.conversationId ??= data.message?.conversationId ?? data.conversation?.conversationId;
    for (const call of callsOf(data)) {
      turn.agentId = this.#target(call, turn.conversationId) ?? turn.agentId;
    }
  }

  /** The agent that a tool call switched to, where it did. */
  #target(call, conversationId) {
    const { tool, servers } = this.#options;
    const [name, server] = split(call?.name);
    if (name !== tool || (server !== undefined && servers !== null && !servers.includes(server))) {
      return undefined;
    }
    const answer = answerOf(call.output);
    const succeeded = answer && (answer.status ? answer.status === 'success' : answer.success === true);
    if (!succeeded || (answer.action && answer.action !== 'switch_agent')) {
      return undefined;
    }
    const other = answer.conversation_id && conversationId && answer.conversation_id !== conversationId;
    return other || typeof answer.agent_id !== 'string' || !answer.agent_id ? undefined : answer.agent_id;
  }

  #tell(change) {
    const previousAgentId = this.#active.get(change.conversationId);
    if (previousAgentId === change.agentId) {
      return;
    }
    this.#active.set(change.conversationId, change.agentId);
    for (const listener of this.#listeners) {
      listener({ ...change, previousAgentId });
    }
  }
}

/** The server-sent events of a response, with their data parsed where it is JSON. */
export async function* readEvents(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = '';
  let held = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const chunk = held + (done ? decoder.decode() : decoder.decode(value, { stream: true }));
      // A CR at the end may be half of a CRLF.
      held = !done && chunk.endsWith('\r') ? '\r' : '';
      const from = Math.max(0, text.length - 1);
      text += chunk.slice(0, chunk.length - held.length).replace(/\r\n?/g, '\n');
      for (let end = text.indexOf('\n\n', from); end >= 0; end = text.indexOf('\n\n')) {
        const event = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (event) {
          yield event;
        }
      }
      if (done) {
        return;
      }
    }
  } finally {
    // Whoever stops listening lets the server know.
    await reader.cancel().catch(() => {});
  }
}

function parse(block) {
  const event = { event: 'message', data: undefined, id: undefined };
  const data = [];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') {
      data.push(value);
    } else if (field === 'event' || field === 'id') {
      event[field] = value;
    }
  }
  if (data.length === 0) {
    return undefined;
  }
  const text = data.join('\n');
  try {
    event.data = JSON.parse(text);
  } catch {
    event.data = text;
  }
  return event;
}

/** The finished tool calls that an event tells of. */
function callsOf(data) {
  if (data.event === 'on_run_step_completed') {
    return [data.data?.result?.tool_call];
  }
  const content = data.responseMessage?.content ?? data.resumeState?.aggregatedContent;
  return Array.isArray(content) ? content.map((part) => part?.tool_call) : [];
}

function split(name) {
  const at = typeof name === 'string' ? name.indexOf(MCP) : -1;
  return at < 0 ? [name, undefined] : [name.slice(0, at), name.slice(at + MCP.length)];
}

/** Up to v0.8.1 the output is a list of MCP content. */
function answerOf(output) {
  try {
    const answer = typeof output === 'string' ? JSON.parse(output) : output;
    return Array.isArray(answer) ? answerOf(answer.find((item) => item?.text)?.text) : answer;
  } catch {
    return undefined;
  }
}

function backoff(attempt) {
  return Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** attempt);
}

function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
