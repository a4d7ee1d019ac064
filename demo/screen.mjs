// What the demonstration prints: plain lines, with colour where a person looks at a terminal.

const coloured = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code) => (text) => (coloured ? `\x1b[${code}m${text}\x1b[0m` : text);

export const bold = paint('1');
export const dim = paint('2');
export const good = paint('32');
export const bad = paint('31');

export const say = (line = '') => process.stdout.write(`${line}\n`);

/** Whether a person sits there, who can press Ctrl-C. */
export const attended = Boolean(process.stdout.isTTY && process.stdin.isTTY);

export function heading(text) {
  say();
  say(bold(text));
  say();
}

/** One thing that happened, so many milliseconds after the turn began. */
export function moment(millis, text) {
  say(`  ${dim(`+${String(Math.round(millis)).padStart(4)} ms`)}  ${text}`);
}

export function duration(millis) {
  return millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`;
}
