// Elements, numbers and texts.

const SVG = 'http://www.w3.org/2000/svg';

// Attributes and children of a node. Text always becomes text, never markup.
const furnish = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
};

export const el = (name, attributes, ...children) => furnish(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) => furnish(document.createElementNS(SVG, name), attributes, children);
export const byId = (id) => document.getElementById(id);

// A value with four significant digits.
export const number = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return String(Number(value.toPrecision(4)));
};

// A time in nanoseconds with a unit.
export const time = (ns) => {
  if (ns >= 1e9) return `${number(ns / 1e9)} s`;
  if (ns >= 1e6) return `${number(ns / 1e6)} ms`;
  if (ns >= 1e3) return `${number(ns / 1e3)} µs`;
  return `${number(ns)} ns`;
};

// Fills a select with words, and keeps what was chosen if it is still there.
export const choices = (select, options, preferred) => {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => el('option', { value }, text)));
  const has = (value) => options.some(([known]) => known === value);
  if (before && has(before)) select.value = before;
  else if (preferred && has(preferred)) select.value = preferred;
};

// Offers a text as a file.
export const save = (name, text) => {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
  const link = el('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};
