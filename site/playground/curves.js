// Curves of the points so far, beside those of the run before, as a chart and as a table.

import { byId, choices, el, number, svg } from './dom.js';

const SIZE = { height: 360, left: 62, right: 14, top: 12, bottom: 44 };
// Where it is not laid out, and the least.
const WIDTH = { usual: 760, least: 280 };
const AXIS = 'axis';
// What is shown first, if it was measured.
const PREFERRED = ['kiops', 'mib_s', 'lat_mean_us', 'dlwa'];

const jobOf = (point, name) => point.jobs.find((job) => job.name === name) ?? point.jobs[0];
const metric = (point, job, name) => (name === AXIS ? point.x : jobOf(point, job)?.metrics[name]);

// Linear, or logarithmic if values span much.
const scaleOf = (values, from, to, zero) => {
  const finite = values.filter(Number.isFinite);
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  const log = low > 0 && high / low > 12;
  if (!log && zero && low > 0) low = 0;
  if (high === low) [low, high] = log || low !== 0 ? [low * 0.9, high * 1.1] : [0, 1];
  const of = log ? Math.log : (value) => value;
  const at = (value) => from + ((of(value) - of(low)) / (of(high) - of(low))) * (to - from);
  return { at, ticks: log ? logTicks(low, high) : ticks(low, high) };
};
const ticks = (low, high) => {
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) ?? raw;
  const list = [];
  for (let value = Math.ceil(low / step) * step; value <= high * (1 + 1e-9); value += step) list.push(value);
  return list;
};
const logTicks = (low, high) => {
  const list = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const factor of high / low > 500 ? [1] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) list.push(value);
    }
  }
  return list;
};

// Those of marks that have room beside each other.
const apart = (marks, across) => {
  let last = -Infinity;
  return marks.filter(([value]) => {
    const at = across.at(value);
    const fits = at - last > 36;
    if (fits) last = at;
    return fits;
  });
};

export class Curves {
  constructor() {
    this.points = [];
    this.before = [];
    this.overview = null;
    this.units = {};
    for (const id of ['x', 'y', 'job', 'keep']) byId(id).addEventListener('change', () => this.draw());
  }

  // Begins a run; the last one stays to compare with, if it is of the same experiment.
  begin(overview) {
    const isSame = this.overview?.id === overview.id;
    if (!isSame) for (const id of ['x', 'y', 'job']) byId(id).replaceChildren();
    if (!isSame) this.before = [];
    else if (this.points.length > 0) this.before = this.points;
    this.overview = overview;
    this.points = [];
    this.draw();
  }

  add(point, units) {
    this.points.push(point);
    Object.assign(this.units, units);
    this.#offer();
    this.draw();
  }

  // What can be chosen: every metric and job that there is.
  #offer() {
    const { figure, axis } = this.overview;
    const names = new Set(this.points.flatMap((point) => point.jobs.flatMap((job) => Object.keys(job.metrics))));
    const metrics = [...names].sort().map((name) => [name, this.#name(name)]);
    const isMetric = (name) => name && name !== AXIS && names.has(name);
    const first = PREFERRED.find((name) => names.has(name)) ?? metrics[0]?.[0];
    choices(byId('y'), metrics, isMetric(figure?.y) ? figure.y : first);
    choices(byId('x'), [[AXIS, axis.name || 'axis'], ...metrics], isMetric(figure?.x) ? figure.x : AXIS);
    const jobs = [...new Set(this.points.flatMap((point) => point.jobs.map((job) => job.name)))];
    choices(byId('job'), jobs.map((job) => [job, job]), figure?.job);
  }

  #name(metric) {
    const unit = this.units[metric];
    return unit ? `${metric} (${unit})` : metric;
  }

  #chosen() {
    return { x: byId('x').value || AXIS, y: byId('y').value, job: byId('job').value };
  }

  // Names of the series, in the order of the experiment.
  get series() {
    return [...new Set(this.overview.points.map((point) => point.series))];
  }

  #lines(points) {
    const { x, y, job } = this.#chosen();
    return this.series.map((series) => {
      const own = points.filter((point) => point.series === series);
      const pairs = own.map((point) => ({ x: metric(point, job, x), y: metric(point, job, y), label: point.x_label }));
      return { series, pairs: pairs.filter((pair) => Number.isFinite(pair.x) && Number.isFinite(pair.y)) };
    });
  }

  draw() {
    if (!this.overview) return;
    const lines = this.#lines(this.points);
    const before = byId('keep').checked ? this.#lines(this.before) : [];
    byId('chart').replaceChildren(this.#chart(lines, before));
    byId('legend').replaceChildren(
      ...lines.map(({ series }, index) => el('span', { class: 'key' }, el('span', { class: `swatch s${index % 8}` }), el('span', {}, series))),
    );
    byId('table').replaceChildren(this.#table(lines));
    this.#say(lines);
  }

  #chart(lines, before) {
    const { height, left, right, top, bottom } = SIZE;
    const width = Math.max(WIDTH.least, byId('chart').clientWidth || WIDTH.usual);
    const all = [...lines, ...before].flatMap((line) => line.pairs);
    const { x, y } = this.#chosen();
    const frame = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-labelledby': 'curves-title', 'aria-describedby': 'summary' });
    if (all.length === 0) return frame;
    const across = scaleOf(all.map((pair) => pair.x), left, width - right, false);
    const up = scaleOf(all.map((pair) => pair.y), height - bottom, top, true);
    for (const value of up.ticks) {
      const at = up.at(value);
      frame.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: at, y2: at }));
      frame.append(svg('text', { class: 'tick', x: left - 6, y: at + 4, 'text-anchor': 'end' }, number(value)));
    }
    for (const [value, text] of this.#marks(x, lines, across)) {
      frame.append(svg('text', { class: 'tick', x: across.at(value), y: height - bottom + 16, 'text-anchor': 'middle' }, text));
    }
    frame.append(svg('path', { class: 'axis', fill: 'none', d: `M${left},${top}V${height - bottom}H${width - right}` }));
    const name = x === AXIS ? this.overview.axis.name : this.#name(x);
    frame.append(svg('text', { x: (left + width - right) / 2, y: height - 8, 'text-anchor': 'middle' }, name));
    frame.append(svg('text', { x: -(top + height - bottom) / 2, y: 12, 'text-anchor': 'middle', transform: 'rotate(-90)' }, this.#name(y)));
    const path = (pairs) => pairs.map((pair, n) => `${n ? 'L' : 'M'}${across.at(pair.x).toFixed(1)},${up.at(pair.y).toFixed(1)}`).join('');
    before.forEach((line, index) => frame.append(svg('g', { class: `s${index % 8}` }, svg('path', { class: 'line before', d: path(line.pairs) }))));
    lines.forEach((line, index) => {
      const group = svg('g', { class: `s${index % 8}`, 'data-series': line.series }, svg('path', { class: 'line', d: path(line.pairs) }));
      for (const pair of line.pairs) {
        const dot = svg('circle', { class: 'dot', r: 4, cx: across.at(pair.x), cy: up.at(pair.y) });
        dot.append(svg('title', {}, `${line.series}, ${pair.label}: ${number(pair.y)}`));
        group.append(dot);
      }
      frame.append(group);
    });
    return frame;
  }

  // Ticks across: of the axis, its own values.
  #marks(x, lines, across) {
    if (x !== AXIS) return apart(across.ticks.map((value) => [value, number(value)]), across);
    const own = new Map(this.overview.points.map((point) => [point.x, point.x_label]));
    const shown = new Set(lines.flatMap((line) => line.pairs.map((pair) => pair.x)));
    const marks = [...own].filter(([value]) => shown.has(value)).sort((a, b) => a[0] - b[0]);
    return apart(marks, across);
  }

  #table(lines) {
    const { y, job } = this.#chosen();
    const labels = [...new Set(this.overview.points.map((point) => point.x_label))];
    const head = el('tr', {}, el('th', { scope: 'col' }, this.overview.axis.name || 'axis'), lines.map(({ series }) => el('th', { scope: 'col', class: 'number' }, series)));
    const cell = (series, label) => {
      const point = this.points.find((one) => one.series === series && one.x_label === label);
      return el('td', { class: 'number' }, point ? number(metric(point, job, y)) : '');
    };
    const rows = labels.map((label) => el('tr', {}, el('th', { scope: 'row' }, label), lines.map(({ series }) => cell(series, label))));
    return el('table', {}, el('caption', { class: 'soft small' }, this.#name(y)), el('thead', {}, head), el('tbody', {}, rows));
  }

  // The greatest of each series in words, once all is there: for who sees no chart.
  #say(lines) {
    const isWhole = this.points.length === this.overview.points.length && this.points.length > 0;
    const { y } = this.#chosen();
    const range = ({ series, pairs }) => {
      const values = pairs.map((pair) => pair.y);
      return `${series}: ${number(Math.min(...values))} to ${number(Math.max(...values))}`;
    };
    const some = lines.filter((line) => line.pairs.length > 0);
    byId('summary').textContent = isWhole ? `${this.#name(y)}. ${some.map(range).join('; ')}.` : '';
  }
}
