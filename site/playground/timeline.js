// What kept each channel and die busy for a while.

import { byId, el, svg, time } from './dom.js';

const CAUSES = [
  'host-read', 'host-write', 'finish-fill', 'reset-erase', 'write-erase',
  'collect-read', 'collect-write', 'collect-erase', 'modify-read', 'fold',
];
const LANE = 15;
const LEFT = 185;
const WIDTH = 1000;

export class Timeline {
  show(pictures) {
    const { rows, names, from_ns: from, until_ns: until, left_out: leftOut } = pictures;
    const width = byId('timeline').clientWidth || WIDTH;
    const left = Math.min(LEFT, width * 0.3);
    const height = rows.length * LANE + 20;
    const at = (ns) => left + ((Math.min(Math.max(ns, from), until) - from) / Math.max(1, until - from)) * (width - left - 4);
    const frame = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': this.#words(pictures) });
    rows.forEach((row, index) => {
      const y = index * LANE;
      const name = width < 600 ? short(row.name) : row.name;
      frame.append(svg('text', { x: left - 6, y: y + 11, 'text-anchor': 'end' }, name));
      frame.append(svg('rect', { class: 'lane', x: left, y: y + 1, width: width - left - 4, height: LANE - 3 }));
      for (const [start, end, cause, name] of row.spans) {
        const [x, to] = [at(start), at(end)];
        frame.append(svg('rect', { class: `b${CAUSES.indexOf(cause)}`, x, y: y + 1, width: Math.max(0.6, to - x), height: LANE - 3, 'data-name': name, 'data-from': start, 'data-to': end }));
      }
    });
    for (const share of [0, 0.5, 1]) {
      const ns = from + share * (until - from);
      const anchor = ['start', 'middle', 'end'][share * 2];
      frame.append(svg('text', { x: at(ns), y: height - 5, 'text-anchor': anchor }, time(ns)));
    }
    frame.addEventListener('pointermove', ({ target }) => {
      const { name, from: start, to } = target.dataset;
      if (name !== undefined) byId('span').textContent = `${names[name]}: ${time(to - start)}, from ${time(Number(start))} on`;
    });
    byId('timeline').replaceChildren(rows.length > 0 ? frame : el('p', { class: 'soft' }, 'Nothing was busy then.'));
    byId('causes').replaceChildren(...CAUSES.map((cause, index) => el('span', { class: 'key' }, el('span', { class: `swatch b${index}` }), cause)));
    byId('span').textContent = `${this.#words(pictures)}${leftOut > 0 ? ` ${leftOut} more are not shown.` : ''}`;
  }

  // For who does not see it: how busy units were, and with what.
  #words({ rows, from_ns: from, until_ns: until }) {
    const units = rows.filter((row) => !row.is_channel);
    const whole = Math.max(1, (until - from) * units.length);
    const share = (cause) => {
      const spans = units.flatMap((row) => row.spans.filter((span) => span[2] === cause));
      return spans.reduce((sum, [start, end]) => sum + Math.max(0, Math.min(end, until) - Math.max(start, from)), 0) / whole;
    };
    const parts = CAUSES.map((cause) => [cause, share(cause)]).filter(([, of]) => of > 0);
    const said = parts.map(([cause, of]) => `${cause} ${(of * 100).toFixed(1)} %`).join(', ');
    return `${time(from)} to ${time(until)}: dies were busy with ${said || 'nothing'}.`;
  }
}

const short = (name) => name.replace('channel ', 'ch ').replace(' way ', '/').replace(' die ', '/').replace(' plane ', '/');
