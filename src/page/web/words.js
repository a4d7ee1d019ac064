// Numbers, times and names in words.

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const NUMBER = new Intl.NumberFormat();

export const OUTCOMES = {
  open: 'Open',
  settled: 'Settled',
  superseded: 'Superseded',
  rejected: 'Rejected',
};

export const RANGES = { '24h': 'in 24 hours', '7d': 'in 7 days', '30d': 'in 30 days' };

export const number = (n) => NUMBER.format(n);

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

/** A time of today by the clock, any other with its day. */
export function moment(ms, now = Date.now()) {
  const [then, today] = [new Date(ms), new Date(now)];
  const clock = CLOCK.format(then);
  return then.toDateString() === today.toDateString() ? clock : `${DAY.format(then)}, ${clock}`;
}

export const iso = (ms) => new Date(ms).toISOString();

/** A part of the time: an hour by its beginning, a day by its date. */
export function part(ms, length) {
  const begin = new Date(ms);
  if (length >= 24 * 3600e3) return DAY.format(begin);
  return length > 3600e3 ? `${DAY.format(begin)}, ${HOUR.format(begin)}` : HOUR.format(begin);
}

/** A span in the unit that suits it. */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60e3) return `${(ms / 1000).toFixed(ms < 10e3 ? 1 : 0)} s`;
  if (ms < 3600e3) return `${Math.round(ms / 60e3)} min`;
  return `${(ms / 3600e3).toFixed(1)} h`;
}

/** What an agent is called: by its name, else by its id. */
export const called = (agent) => (agent ? agent.name?.trim() || agent.id : 'unknown');
