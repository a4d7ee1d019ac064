// What happened over time: switches by outcome, and below them the repairs.

import { h, redraw, say, svg, table } from './dom.js';
import { OUTCOMES, number, part as words } from './words.js';

const STACK = ['settled', 'superseded', 'rejected', 'open'];

export function showBars(place, overview) {
  const { parts, begins, part: length } = overview;
  const label = (i) => words(begins + i * length, length);
  const total = (part) => STACK.reduce((sum, key) => sum + part[key], 0);
  const sum = (key) => parts.reduce((all, part) => all + part[key], 0);
  const isEmpty = parts.every((part) => total(part) + part.repairs === 0);
  const resting = isEmpty ? 'Nothing has happened in this time.' : 'Point at a bar to read it.';
  const readout = h('p', { class: 'readout', 'aria-hidden': 'true' }, resting);
  const read = (i) => say(readout, i === null ? resting : `${label(i)} – ${tell(parts[i])}`);

  const chart = (title, keys) => {
    const height = (part) => keys.reduce((all, key) => all + part[key], 0);
    const most = Math.max(1, ...parts.map(height));
    const all = parts.reduce((sum, part) => sum + height(part), 0);
    const described = `${title}: ${number(all)} in all, at most ${number(Math.max(...parts.map(height)))} in a bar. The table below has them.`;
    return h('figure', { class: 'chart' },
      h('figcaption', {}, title, h('span', { class: 'most' }, number(most))),
      svg('svg', { viewBox: `0 0 ${parts.length} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': described },
        svg('line', { class: 'ground', x1: 0, x2: parts.length, y1: 100, y2: 100 }),
        ...parts.map((part, i) => {
          let top = 100;
          const pieces = keys.map((key) => {
            const tall = (part[key] / most) * 100;
            top -= tall;
            return tall && svg('rect', { class: `of-${key}`, x: i + 0.14, width: 0.72, y: top, height: tall });
          });
          return svg('g', {
            class: 'part', onpointerenter: () => read(i), onpointerleave: () => read(null),
          }, svg('rect', { class: 'hit', x: i, width: 1, y: 0, height: 100 }), ...pieces.filter(Boolean));
        })));
  };

  redraw(place,
    h('ul', { class: 'legend' }, ...[...STACK, 'repairs'].map((key) => h('li', {},
      h('span', { class: `swatch of-${key}`, 'aria-hidden': 'true' }),
      `${OUTCOMES[key] ?? 'Put back'} `, h('b', {}, number(sum(key)))))),
    chart('Switches', STACK),
    chart('Put back', ['repairs']),
    h('p', { class: 'axis', 'aria-hidden': 'true' },
      h('span', {}, label(0)), h('span', {}, label(Math.floor(parts.length / 2))), h('span', {}, label(parts.length - 1))),
    readout,
    isEmpty ? null : table('Switches and repairs over time', ['From', ...STACK.map((key) => OUTCOMES[key]), 'Put back'],
      parts.map((part, i) => [label(i), ...STACK.map((key) => number(part[key])), number(part.repairs)])
        .filter((_, i) => total(parts[i]) + parts[i].repairs > 0)),
  );
}

/** A part of the time in words. */
function tell(part) {
  const said = STACK.filter((key) => part[key] > 0).map((key) => `${number(part[key])} ${OUTCOMES[key].toLowerCase()}`);
  if (part.repairs > 0) said.push(`${number(part.repairs)} put back`);
  return said.join(', ') || 'nothing';
}
