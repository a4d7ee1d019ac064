// The page: what is wanted, and what comes of it.

import { showBars } from './bars.js';
import { at, h, say } from './dom.js';
import { showFlows } from './flows.js';
import { Switches, showNone } from './switches.js';
import { showPulse, showSums } from './vitals.js';
import { called, moment, plural } from './words.js';

const FILTERS = ['agent', 'user', 'conversation', 'outcome'];

/** How long to wait before another try, where the server refuses. In milliseconds. */
const PATIENCE = 3000;

/** How long a text field rests before what it says counts. In milliseconds. */
const REST = 350;

/** No word for so long: the connection is gone, whatever the browser makes of it. In milliseconds. */
const SILENCE = 6000;

const filters = at('filters');
const switches = new Switches(narrow);
let stream = null;
let again = 0;
let heard = 0;
let overview = null;

const isPaused = () => at('pause').getAttribute('aria-pressed') === 'true';
const range = () => document.querySelector('input[name=time]:checked').value;

/** What is asked for, as a query: of the page's address, and of what it reads. */
function query() {
  const asked = new URLSearchParams();
  for (const name of FILTERS) {
    const value = filters.elements[name].value.trim();
    if (value) asked.set(name, value);
  }
  if (range() !== '24h') asked.set('time', range());
  return asked;
}

const isNarrowed = () => FILTERS.some((name) => filters.elements[name].value.trim());

function connection(state, words) {
  at('connection').dataset.state = state;
  say(at('connection'), words);
}

/** Follows what happens; what was followed before no longer matters. */
function follow() {
  stop();
  stream = new EventSource(`ops/events?${query()}`);
  const own = stream;
  const on = (name, take) => own.addEventListener(name, (event) => {
    heard = Date.now();
    take(JSON.parse(event.data));
  });
  heard = Date.now();
  on('pulse', (pulse) => {
    connection('live', 'Live');
    showPulse(pulse);
    say(at('clock'), `Last heard at ${moment(pulse.now)}.`);
  });
  on('switches', (page) => {
    at('trouble').hidden = true;
    const fresh = switches.newest(page);
    showNone(switches.size === 0, isNarrowed());
    if (switches.size > 0) {
      say(at('count'), fresh > 0 ? `${plural(fresh, 'new switch', 'new switches')}` : `${plural(switches.size, 'switch', 'switches')} shown`);
    }
  });
  on('overview', (news) => {
    at('trouble').hidden = true;
    overview = news;
    showOverview();
  });
  on('trouble', ({ message }) => {
    say(at('trouble'), `The switches cannot be read: ${message}. What is shown below may be out of date.`);
    at('trouble').hidden = false;
  });
  own.addEventListener('error', () => {
    if (stream !== own) return;
    connection('lost', 'Connection lost, trying again');
    // Refused, and not just cut: the session may be over.
    if (own.readyState === EventSource.CLOSED) lost();
  });
}

function stop() {
  clearTimeout(again);
  stream?.close();
  stream = null;
}

async function lost() {
  const own = stream;
  const answer = await fetch('ops/session', { cache: 'no-store' }).catch(() => null);
  if (stream !== own) return;
  if (answer?.status === 403) location.reload();
  else again = setTimeout(follow, PATIENCE);
}

function showOverview() {
  showSums(overview, range());
  showBars(at('bars'), overview);
  showFlows(at('flows'), overview.flows, (agent) => narrow('agent', agent.id));
  const agents = new Map();
  for (const { from, to } of overview.flows) {
    for (const agent of [from, to]) if (agent) agents.set(agent.id, agent);
  }
  at('agents').replaceChildren(...[...agents.values()].map((agent) => h('option', { value: agent.id }, called(agent))));
}

/** Other switches are wanted. */
function ask() {
  const asked = query().toString();
  history.replaceState(null, '', asked ? `?${asked}` : location.pathname);
  at('clear').hidden = !isNarrowed();
  switches.clear();
  if (isPaused()) pause(false);
  else follow();
}

function narrow(name, value) {
  filters.elements[name].value = value;
  ask();
  at('switches').focus();
}

function pause(really) {
  at('pause').setAttribute('aria-pressed', really);
  if (really) {
    stop();
    connection('paused', 'Paused');
  } else {
    connection('waiting', 'Connecting');
    follow();
  }
}

async function older() {
  at('older').disabled = true;
  const asked = query();
  asked.set('until', switches.oldest);
  const answer = await fetch(`ops/switches?${asked}`, { cache: 'no-store' }).catch(() => null);
  at('older').disabled = false;
  if (answer?.status === 403) location.reload();
  else if (answer?.ok) {
    switches.older(await answer.json());
    say(at('count'), `${plural(switches.size, 'switch', 'switches')} shown`);
  } else {
    say(at('trouble'), 'The older switches could not be read. Try again.');
    at('trouble').hidden = false;
  }
}

const asked = new URLSearchParams(location.search);
for (const name of FILTERS) filters.elements[name].value = asked.get(name) ?? '';
for (const choice of document.querySelectorAll('input[name=time]')) {
  choice.checked = choice.value === (asked.get('time') ?? '24h');
  choice.addEventListener('change', ask);
}
if (!document.querySelector('input[name=time]:checked')) document.querySelector('input[name=time]').checked = true;
at('clear').hidden = !isNarrowed();

let rest = 0;
filters.addEventListener('input', () => {
  clearTimeout(rest);
  rest = setTimeout(ask, REST);
});
filters.addEventListener('submit', (event) => {
  event.preventDefault();
  clearTimeout(rest);
  ask();
});
// The fields are emptied after this event.
filters.addEventListener('reset', () => setTimeout(ask));
at('pause').addEventListener('click', () => pause(!isPaused()));
at('older').addEventListener('click', older);
setInterval(() => {
  if (!stream || isPaused() || Date.now() - heard < SILENCE) return;
  connection('lost', 'Connection lost, trying again');
  follow();
}, SILENCE);
follow();
