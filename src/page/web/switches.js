// The list of switches, each with what happened to it.

import { at, fill, foreign, h, say } from './dom.js';
import { OUTCOMES, called, iso, moment, number, plural, span } from './words.js';

const ORIGINS = {
  tool: 'Learned from a tool’s call',
  mcp: 'Learned from Baton’s own tool',
  handoff: 'Learned from a handoff of LibreChat’s own',
  api: 'Chosen by a front end (PATCH)',
};

const BY = { tool: 'tool', mcp: 'Baton’s tool', handoff: 'handoff', api: 'front end' };

export class Switches {
  /** What is shown, by id: the switch as it came last, and its item. */
  #shown = new Map();
  #narrow;
  /** Until the first ones are there, nothing is new. */
  #isFresh = true;

  /** `narrow` is called with a filter's name and value. */
  constructor(narrow) {
    this.#narrow = narrow;
  }

  /** Other ones are wanted. */
  clear() {
    this.#shown.clear();
    this.#isFresh = true;
    at('list').setAttribute('aria-busy', 'true');
  }

  /** The newest ones. Those that are shown already stay where they are, opened or not. */
  newest({ switches, more }) {
    const before = this.#shown.size;
    const isFresh = this.#isFresh;
    if (isFresh) fill(at('list'));
    this.#isFresh = false;
    this.#take(switches, !isFresh);
    at('list').removeAttribute('aria-busy');
    if (isFresh || this.#shown.size === switches.length) at('older').hidden = !more;
    return isFresh ? 0 : this.#shown.size - before;
  }

  /** Older ones, below. */
  older({ switches, more }) {
    const before = this.#shown.size;
    this.#take(switches, false);
    at('older').hidden = !more || this.#shown.size === before;
  }

  get size() {
    return this.#shown.size;
  }

  /** When the oldest one was learned of. */
  get oldest() {
    return Math.min(...[...this.#shown.values()].map(({ known }) => known.learned ?? Infinity));
  }

  #take(switches, areNews) {
    for (const known of switches) {
      const old = this.#shown.get(known.id);
      if (old && JSON.stringify(old.known) === JSON.stringify(known)) continue;
      const item = this.#item(known, old?.item);
      if (areNews && !old) item.classList.add('new');
      this.#shown.set(known.id, { known, item });
    }
    const order = [...this.#shown.values()].sort((a, b) => (b.known.learned ?? 0) - (a.known.learned ?? 0));
    const list = at('list');
    // Only what is not in its place is moved, so that nothing else loses the focus.
    order.forEach(({ item }, i) => {
      if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null);
    });
  }

  #item(known, old) {
    const item = old ?? h('li', {}, h('details', {}, h('summary', {}), h('div', { class: 'inside' })));
    const [summary, inside] = item.firstElementChild.children;
    item.dataset.outcome = known.status;
    fill(summary,
      h('time', { datetime: iso(known.learned), title: iso(known.learned) }, moment(known.learned)),
      h('span', { class: 'handoff' },
        foreign(called(known.from), { class: known.from ? 'agent' : 'agent unknown' }),
        h('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'), h('span', { class: 'unseen' }, ' to '),
        foreign(called(known.to), { class: 'agent' })),
      h('span', { class: `outcome is-${known.status}` }, OUTCOMES[known.status]),
      h('span', { class: 'repairs' }, known.repairs > 0 ? `${number(known.repairs)} put back` : ''),
      h('span', { class: 'by' }, h('span', { class: 'unseen' }, 'by '), BY[known.origin] ?? known.origin));
    const focused = inside.contains(document.activeElement) ? document.activeElement.dataset.narrow : null;
    fill(inside, timeline(known), this.#facts(known));
    if (focused) inside.querySelector(`[data-narrow="${focused}"]`)?.focus();
    return item;
  }

  #facts(known) {
    const only = (name, value, what) => h('button', {
      type: 'button', class: 'only', 'data-narrow': name, onclick: () => this.#narrow(name, value),
    }, `Only ${what}`);
    const fact = (term, ...values) => [h('dt', {}, term), h('dd', {}, ...values)];
    const agent = (agent, what) => [
      foreign(called(agent)), agent.name ? h('code', {}, agent.id) : null, only('agent', agent.id, what),
    ];
    return h('dl', { class: 'facts' },
      ...(known.reason ? fact('Reason', foreign(known.reason, { class: 'reason' })) : []),
      ...(known.from ? fact('From', ...agent(known.from, 'this agent’s')) : []),
      ...fact('To', ...agent(known.to, 'this agent’s').map((part) => {
        if (part?.dataset?.narrow) part.dataset.narrow = 'agent to';
        return part;
      })),
      ...fact('Conversation', h('code', {}, known.conversation), only('conversation', known.conversation, 'this one’s')),
      ...(known.answer ? fact('Messages', h('code', {}, known.answer.response ?? ''), h('code', {}, known.answer.message)) : []),
      ...fact('User', h('code', {}, known.user), only('user', known.user, 'this user’s')));
  }
}

/** What happened, in its order. Overwrites are timed by LibreChat's clock, all else by MongoDB's. */
function timeline(known) {
  const { learned } = known;
  const later = (ms) => (ms === learned ? '' : `+${span(Math.max(0, ms - learned))}`);
  const step = (kind, title, ms, note, after = later(ms)) => h('li', { class: kind },
    h('p', { class: 'step' }, h('b', {}, title),
      ms ? h('time', { datetime: iso(ms), title: iso(ms) }, moment(ms)) : null,
      h('span', { class: 'after' }, ms ? after : '')),
    note ? h('p', { class: 'note' }, ...[note].flat()) : null);
  const [from, to] = [foreign(called(known.from)), foreign(called(known.to))];
  const steps = [step('learned', 'Learned', learned, ORIGINS[known.origin])];
  const timed = [];
  if (known.applied) {
    timed.push([known.applied, step('applied', 'Applied', known.applied, ['The conversation was given to ', to, '.'])]);
  }
  for (const { at: overwritten, put_back: putBack } of known.overwrites) {
    timed.push([putBack, step('overwritten', 'Overwritten', overwritten,
      known.from ? ['A save of the same turn wrote ', from.cloneNode(true), ' again (time by LibreChat’s clock).'] : 'A save of the same turn wrote another agent again (time by LibreChat’s clock).', '')]);
    timed.push([putBack, step('put-back', 'Put back', putBack, null)]);
  }
  if (known.told) timed.push([known.told, step('told', 'Told', known.told, 'A client was told of the new agent.')]);
  if (known.answer?.began) timed.push([known.answer.began, step('answer', ...answer(known, to))]);
  steps.push(...timed.sort(([a], [b]) => a - b).map(([, made]) => made));
  const untold = known.repairs - known.overwrites.length;
  if (untold > 0) steps.push(step('put-back', `${plural(untold, 'more overwrite was', 'more overwrites were')} put back`, null, null));
  if (known.corrected > 0) {
    steps.push(step('told', plural(known.corrected, 'message', 'messages'), null, 'of tabs that could not know yet went to the new agent.'));
  }
  if (known.status === 'open') steps.push(step('open', 'Open', null, 'Guarded until its turn has ended.'));
  else steps.push(step(`closed is-${known.status}`, OUTCOMES[known.status], known.closed, known.detail ? foreign(known.detail) : null));
  return h('ol', { class: 'timeline', 'aria-label': 'What happened' }, ...steps);
}

const ANSWERS = {
  splice: {
    claimed: 'is being asked the same message.', begun: 'is answering the same message.',
    done: 'answered the same message, in the same response.', failed: 'was to answer the same message.',
  },
  resend: {
    claimed: 'is to get the same message once more from the client.', done: 'got the same message once more from the client.',
  },
};

/** The step that says how the new agent answers the message in which the switch was made. */
function answer({ answer: { way, stage, began, detail } }, to) {
  const words = ANSWERS[way]?.[stage] ?? stage;
  return ['Same message', began, [to.cloneNode(true), ` ${words}`, detail ? foreign(` ${detail}`) : '']];
}

/** What to say where there is nothing to show. */
export function showNone(isEmpty, isNarrowed) {
  const place = at('none');
  place.hidden = !isEmpty;
  if (!isEmpty) return;
  say(at('count'), '');
  fill(place, ...(isNarrowed
    ? [h('p', {}, h('b', {}, 'No switch is like that.')), h('p', {}, 'Change what is asked for above, or clear it.')]
    : [h('p', {}, h('b', {}, 'No switch yet.')), h('p', {}, 'Ask an agent to hand over: the switch shows up here as it happens.')]));
}
