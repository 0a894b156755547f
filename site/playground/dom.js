// Elements, numbers and texts: those of the report, and what only this page needs.

import { el } from './base.js';

export { duration as time, el, number, svg } from './base.js';
export const byId = (id) => document.getElementById(id);

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
