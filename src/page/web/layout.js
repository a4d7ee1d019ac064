// Where the diagram of handoffs has what: pure, no element in sight.
//
// Agents stand twice, on the left where they hand over and on the right where they take over, so
// that no circle has to be untangled and each name is written straight.

/** The least height of an agent, in px: that of a target for a finger. */
const LEAST = 34;
const GAP = 8;
/** The height that the thicker side's ribbons share, in px. */
const BODY = 200;
/** A ribbon that can be seen. */
const THINNEST = 2;

/** More agents than this are put together on either side. */
const MOST = 10;

export const OTHERS = '…';

/**
 * @param flows `[{ from: id, to: id, switches, refused }]`, the most frequent first
 * @returns `{ height, left, right, ribbons }`; agents as `{ id, y, height, switches }`, ribbons as
 *   `{ from, to, switches, refused, y0, y1, thick }` with the middle of both ends
 */
export function layout(flows) {
  const some = together(flows);
  const ends = (side) => {
    const sums = new Map();
    for (const flow of some) sums.set(flow[side], (sums.get(flow[side]) ?? 0) + flow.switches);
    return [...sums].map(([id, switches]) => ({ id, switches }));
  };
  const total = some.reduce((sum, flow) => sum + flow.switches, 0);
  const scale = total > 0 ? BODY / total : 0;
  const thick = (flow) => Math.max(THINNEST, flow.switches * scale);
  const needs = (id, side) =>
    Math.max(LEAST, some.filter((flow) => flow[side] === id).reduce((sum, flow) => sum + thick(flow), 0));

  const left = stack(ends('from').sort(byWeight), (id) => needs(id, 'from'));
  // On the right each stands about where those are that hand over to it.
  const middle = new Map(left.map((end) => [end.id, end.y + end.height / 2]));
  const pull = (id) => {
    const coming = some.filter((flow) => flow.to === id);
    const weight = coming.reduce((sum, flow) => sum + flow.switches, 0);
    return coming.reduce((sum, flow) => sum + middle.get(flow.from) * flow.switches, 0) / weight;
  };
  const right = stack(
    ends('to').sort((a, b) => last(a) - last(b) || pull(a.id) - pull(b.id)),
    (id) => needs(id, 'to'),
  );

  const height = Math.max(bottom(left), bottom(right));
  for (const side of [left, right]) {
    const spare = (height - bottom(side)) / 2;
    for (const end of side) end.y += spare;
  }
  return { height, left, right, ribbons: ribbons(some, left, right, thick) };
}

/** Ribbons leave and arrive in the order of what is at their other ends, so that few cross. */
function ribbons(flows, left, right, thick) {
  const place = (side) => new Map(side.map((end) => [end.id, end]));
  const [from, to] = [place(left), place(right)];
  const made = flows.map((flow) => ({ ...flow, thick: thick(flow) }));
  for (const [end, own, other, y] of [['from', from, to, 'y0'], ['to', to, from, 'y1']]) {
    const opposite = end === 'from' ? 'to' : 'from';
    for (const [id, box] of own) {
      const mine = made.filter((ribbon) => ribbon[end] === id)
        .sort((a, b) => other.get(a[opposite]).y - other.get(b[opposite]).y);
      let next = box.y + (box.height - mine.reduce((sum, ribbon) => sum + ribbon.thick, 0)) / 2;
      for (const ribbon of mine) {
        ribbon[y] = next + ribbon.thick / 2;
        next += ribbon.thick;
      }
    }
  }
  return made;
}

/** Boxes one below the other. */
function stack(ends, heightOf) {
  let y = 0;
  return ends.map((end) => {
    const box = { ...end, y, height: heightOf(end.id) };
    y += box.height + GAP;
    return box;
  });
}

const bottom = (side) => (side.length ? side.at(-1).y + side.at(-1).height : 0);
const last = (end) => Number(end.id === OTHERS);
const byWeight = (a, b) => last(a) - last(b) || b.switches - a.switches;

/** The flows with those agents of each side put together that are beyond the most frequent. */
function together(flows) {
  const kept = (side) => {
    const seen = new Set();
    for (const flow of flows) if (seen.size < MOST) seen.add(flow[side]);
    return seen;
  };
  const keeps = { from: kept('from'), to: kept('to') };
  const sums = new Map();
  for (const flow of flows) {
    const end = (side) => (keeps[side].has(flow[side]) ? flow[side] : OTHERS);
    const [from, to] = [end('from'), end('to')];
    const key = JSON.stringify([from, to]);
    const sum = sums.get(key) ?? { from, to, switches: 0, refused: 0 };
    sum.switches += flow.switches;
    sum.refused += flow.refused;
    sums.set(key, sum);
  }
  return [...sums.values()];
}
