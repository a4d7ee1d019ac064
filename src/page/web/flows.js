// The diagram of who hands over to whom, and the same as a table.

import { fill, foreign, h, redraw, svg, table } from './dom.js';
import { layout } from './layout.js';
import { called, number, plural } from './words.js';

/** As many as `--hue-…` in the style sheet. */
const HUES = 8;

/** An agent that is not known has an id of its own here. */
const UNKNOWN = '?';

/** `choose` is called with an agent that is clicked. */
export function showFlows(place, flows, choose) {
  if (flows.length === 0) {
    fill(place, h('p', { class: 'none' }, 'No agent has handed over in this time.'));
    return;
  }
  const agents = new Map();
  const known = (agent) => {
    const id = agent?.id ?? UNKNOWN;
    if (!agents.has(id)) agents.set(id, { id, agent, name: called(agent), hue: agents.size % HUES });
    return id;
  };
  const plain = flows.map((flow) => ({ ...flow, from: known(flow.from), to: known(flow.to) }));
  const { height, left, right, ribbons } = layout(plain);
  const name = (id) => agents.get(id)?.name ?? 'all others';

  const end = (side, verb) => ({ id, y, height: tall, switches }) => {
    const agent = agents.get(id)?.agent;
    const said = `${name(id)} ${verb} ${plural(switches, 'time', 'times')}`;
    const own = [
      foreign(name(id), { class: 'name' }), ' ', h('span', { class: 'n' }, number(switches)),
      h('span', { class: 'unseen' }, switches === 1 ? ' switch' : ' switches'),
    ];
    const box = agent
      ? h('button', {
        type: 'button', class: 'end', 'data-key': `${side} ${id}`,
        title: said, onclick: () => choose(agent),
        onpointerenter: () => light(side, id), onpointerleave: dim, onfocus: () => light(side, id), onblur: dim,
      }, ...own)
      : h('span', { class: 'end', title: said }, ...own);
    box.dataset.hue = agents.get(id)?.hue ?? 'none';
    const item = h('li', {}, box);
    item.style.top = `${y}px`;
    item.style.height = `${tall}px`;
    return item;
  };
  const drawn = ribbons.map((ribbon) => {
    const rejected = ribbon.thick * (ribbon.refused / ribbon.switches);
    const said = `${name(ribbon.from)} → ${name(ribbon.to)}: ${number(ribbon.switches)}`;
    return svg('g', {
      class: 'ribbon', 'data-hue': agents.get(ribbon.from)?.hue ?? 'none',
      'data-from': ribbon.from, 'data-to': ribbon.to,
    },
    svg('title', {}, ribbon.refused > 0 ? `${said}, ${number(ribbon.refused)} of them rejected` : said),
    svg('path', { d: band(ribbon, 0, ribbon.thick - rejected) }),
    rejected > 0 ? svg('path', { class: 'refused', d: band(ribbon, ribbon.thick - rejected, ribbon.thick) }) : null);
  });
  const light = (side, id) => {
    for (const ribbon of drawn) ribbon.classList.toggle('dim', ribbon.dataset[side] !== id);
  };
  const dim = () => drawn.forEach((ribbon) => ribbon.classList.remove('dim'));

  const diagram = h('div', { class: 'diagram' },
    h('ul', { class: 'ends', 'aria-label': 'Agents that hand over' }, ...left.map(end('from', 'hands over'))),
    svg('svg', { viewBox: `0 0 100 ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...drawn),
    h('ul', { class: 'ends right', 'aria-label': 'Agents that take over' }, ...right.map(end('to', 'takes over'))));
  diagram.style.height = `${height}px`;
  const rows = plain.map((flow) => [
    h('span', {}, foreign(name(flow.from)), ' → ', foreign(name(flow.to))), number(flow.switches), number(flow.refused),
  ]);
  const hasRefused = plain.some((flow) => flow.refused > 0);
  redraw(place,
    h('p', { class: 'columns', 'aria-hidden': 'true' }, h('span', {}, 'Hands over'), h('span', {}, 'Takes over')),
    diagram,
    hasRefused ? h('p', { class: 'key' }, h('span', { class: 'swatch of-rejected', 'aria-hidden': 'true' }), 'The part that was rejected') : null,
    table('Who hands over to whom', ['Handoff', 'Switches', 'Rejected'], rows),
  );
}

/** The part of a ribbon that is between these distances from its upper edge. */
function band({ y0, y1, thick }, top, bottom) {
  const [a0, a1] = [y0 - thick / 2 + top, y1 - thick / 2 + top];
  const [b0, b1] = [y0 - thick / 2 + bottom, y1 - thick / 2 + bottom];
  return `M0 ${a0}C50 ${a0} 50 ${a1} 100 ${a1}V${b1}C50 ${b1} 50 ${b0} 0 ${b0}Z`;
}
