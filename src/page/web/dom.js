// Elements, made of texts that stay texts: nothing here parses markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Sets what an element has: attributes, `on…` listeners, and children, which are nodes or texts.
 * Attributes that are null, undefined or false are left out.
 */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes = {}, ...children) =>
  furnish(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  furnish(document.createElementNS(SVG, tag), attributes, children);

export const at = (id) => document.getElementById(id);

/** Puts these children in place of those that are there. */
export const fill = (element, ...children) =>
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));

/** The same for what is drawn anew while somebody reads it: a table stays open, the focus stays. */
export function redraw(element, ...children) {
  const wasOpen = element.querySelector('.as-table')?.open ?? false;
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  fill(element, ...children);
  const table = element.querySelector('.as-table');
  if (table) table.open = wasOpen;
  const keyed = [...element.querySelectorAll('[data-key]')];
  if (focused) keyed.find((same) => same.dataset.key === focused)?.focus({ preventScroll: true });
}

/** Writes a text where it is another: what has not changed is not read out again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A text from outside, kept from turning the direction of the texts around it. */
export const foreign = (text, attributes = {}) => h('bdi', attributes, text);

/** A table for those who would rather read than look, closed at first. */
export function table(caption, heads, rows) {
  return h('details', { class: 'as-table' },
    h('summary', { 'data-key': 'open the table' }, 'As a table'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption, 'data-key': 'table' },
      h('table', {},
        h('caption', { class: 'unseen' }, caption),
        h('thead', {}, h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head)))),
        h('tbody', {}, ...rows.map(([first, ...rest]) => h('tr', {},
          h('th', { scope: 'row' }, first), ...rest.map((cell) => h('td', {}, cell))))))));
}
