// How it is at this moment.

import { at, h, say, svg } from './dom.js';
import { RANGES, number, plural, span } from './words.js';

const REMEMBERED = 60;

/** Seconds of the stream's lag, oldest first. */
const lags = [];

export function showPulse(pulse) {
  say(at('version'), pulse.version);
  at('health').dataset.ready = pulse.ready;
  say(at('ready'), pulse.ready ? 'Working' : 'Not working');
  document.title = pulse.ready ? 'Baton' : '⚠ Not working – Baton';
  showChecks(pulse.checks);
  say(at('lag'), span(pulse.lag * 1000));
  at('lag').classList.toggle('bad', pulse.lag >= 5);
  say(at('position'), `position saved ${span(pulse.saved_age * 1000)} ago`);
  say(at('guarded'), `${number(pulse.guarded)} guarded by this instance`);
  lags.push(pulse.lag);
  lags.splice(0, lags.length - REMEMBERED);
  drawLags();
}

export function showSums(overview, range) {
  const sum = (key) => overview.parts.reduce((total, part) => total + part[key], 0);
  const all = ['open', 'settled', 'superseded', 'rejected'].reduce((total, key) => total + sum(key), 0);
  say(at('open'), number(overview.open));
  say(at('repairs'), number(sum('repairs')));
  say(at('rejected'), number(sum('rejected')));
  at('rejected').classList.toggle('bad', sum('rejected') > 0);
  say(at('rejected-of'), `of ${plural(all, 'switch', 'switches')} ${RANGES[range]}`);
  for (const place of document.querySelectorAll('.in-range')) say(place, RANGES[range]);
}

/** Written anew only where something else is to be said: it is a live region. */
function showChecks(checks) {
  const list = at('checks');
  const news = JSON.stringify(checks);
  if (list.dataset.shown === news) return;
  list.dataset.shown = news;
  list.replaceChildren(...checks.map((check) => h('li', { class: check.ok ? 'ok' : 'wrong' },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, check.ok ? '✓' : '✕'),
    h('span', {}, check.ok ? `${check.name}: in order` : `${check.name}: ${check.detail}`))));
}

/** The last minute: a second is the least that fills the height. */
function drawLags() {
  const most = Math.max(1, ...lags);
  const x = (i) => 60 - (lags.length - 1 - i);
  const y = (lag) => 19 - 18 * (lag / most);
  const points = lags.map((lag, i) => `${x(i)} ${y(lag).toFixed(2)}`);
  at('lags').replaceChildren(svg('path', { d: points.length > 1 ? `M${points.join('L')}` : 'M0 19' }));
}
