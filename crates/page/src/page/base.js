// Building blocks: elements, numbers, units.

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
const el = (name, attributes, ...children) => furnish(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => furnish(document.createElementNS(SVG, name), attributes, children);

// A value with four significant digits, as in the tables of the command.
const number = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e12)) return value.toExponential(3);
  const exponent = Number(value.toExponential(3).split('e')[1]);
  return grouped(Number(value.toExponential(3)).toFixed(Math.max(0, 3 - exponent)));
};
// Thousands apart, from five digits on.
const grouped = (digits) => (/^-?\d{5,}$/.test(digits) ? digits.replace(/\B(?=(\d{3})+$)/g, ',') : digits);
// A value with no more digits than it has, for counts and axis values.
const plain = (value) => String(Number(value.toPrecision(6)));
const count = (value) => value.toLocaleString('en-US');
// With half the width of its confidence interval, if that is known.
const within = (text, half) => (half === undefined ? text : `${text} ± ${half === 0 ? '0' : Number(half.toPrecision(2))}`);
const percent = (share, digits = 1) => {
  const least = 10 ** -(digits + 2);
  if (digits > 1 && share > 0 && share < least) return `< ${plain(least * 100)} %`;
  const text = (share * 100).toFixed(digits);
  return `${Number(text) === 0 ? (0).toFixed(digits) : text} %`;
};
const signed = (share) => {
  if (share === null || share === undefined) return '–';
  const text = percent(share);
  return share > 0 && Number.parseFloat(text) !== 0 ? `+${text}` : text.replace('-', '−');
};
// Files spell it in ASCII.
const unitName = (unit) => (unit === 'us' ? 'µs' : unit);
const withUnit = (text, unit) => (unit && unit !== '1' ? `${text} ${unitName(unit)}` : text);

const scaled = (value, steps) => {
  const step = steps.find(([, size]) => value >= size) || steps[steps.length - 1];
  return `${number(value / step[1])} ${step[0]}`;
};
const duration = (ns) => (ns === 0 ? '0 s' : scaled(ns, [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]]));
const bytes = (value) =>
  (value === 0 ? '0 B' : scaled(value, [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024], ['B', 1]]));

// A shell command with a button that copies it, where the browser lets it.
const command = (text) => {
  const code = el('pre', {}, el('code', {}, text));
  const box = el('div', { class: 'command' }, code);
  if (navigator.clipboard) {
    const button = el('button', { type: 'button', class: 'plain' }, 'Copy');
    button.addEventListener('click', () => {
      const done = (word) => { button.textContent = word; };
      navigator.clipboard.writeText(text).then(() => done('Copied'), () => {
        getSelection().selectAllChildren(code);
        done('Selected');
      });
    });
    box.append(button);
  }
  return box;
};
const source = (title, text) =>
  el('details', {}, el('summary', {}, title), el('pre', { class: 'source' }, el('code', {}, text)));
// States of zones by their letters; V is flash of a conventional namespace.
const STATES = { E: 'empty', I: 'implicitly opened', X: 'explicitly opened', C: 'closed', F: 'full', R: 'read only', O: 'offline', V: 'conventional' };
const swatch = (look, name) => el('span', { class: 'key' }, el('span', { class: `swatch ${look}` }), name);

// A box beside the pointer. `move` keeps it inside of `frame`.
const tooltip = (frame) => {
  const box = el('div', { class: 'tip', role: 'status', hidden: true });
  frame.append(box);
  return {
    hide: () => { box.hidden = true; },
    show: (content, x, y) => {
      box.replaceChildren(...content);
      box.hidden = false;
      // Its width depends on the room to its right.
      box.style.left = '0';
      const room = frame.clientWidth - box.offsetWidth;
      const left = x + 14 <= room ? x + 14 : x - 14 - box.offsetWidth;
      box.style.left = `${Math.max(0, Math.min(left, room))}px`;
      const above = y - box.offsetHeight - 12;
      box.style.top = `${above >= 0 ? above : y + 16}px`;
    },
  };
};

// Calls `draw(width)` now and whenever the width of `box` changes.
const whenSized = (box, draw) => {
  let last = 0;
  const redraw = () => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      draw(width);
    }
  };
  new ResizeObserver(redraw).observe(box);
  redraw();
};
