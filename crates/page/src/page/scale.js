// Scales: from values to a share of an axis, with ticks.

const NICE = [1, 2, 2.5, 5, 10];
const niceStep = (raw) => {
  const power = 10 ** Math.floor(Math.log10(raw));
  return NICE.find((m) => m * power >= raw * 0.999999) * power;
};

// From zero, unless the values lie far from it: an axis that is cut off makes
// small differences look large.
const linear = (values, many, zero) => {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (low > 0 && (zero || low <= high * 0.5)) low = 0;
  if (high - low <= Math.abs(high) * 1e-9) {
    const pad = high === 0 ? 1 : Math.abs(high) * 0.5;
    [low, high] = [Math.min(low, high - pad), high + pad];
    if (values.every((value) => value >= 0)) low = Math.max(0, low);
  }
  const step = niceStep((high - low) / many);
  const room = (high - low) * 0.015;
  low = low === 0 ? 0 : Math.floor((low - room) / step) * step;
  // Up to the next tick if that is near, or a large part of the chart stays empty.
  const next = Math.ceil((high + room) / step) * step;
  high = next - high < step / 2 ? next : high + room;
  const ticks = [];
  for (let i = 0; low + i * step <= high + step * 1e-6; i += 1) {
    const value = low + i * step;
    ticks.push({ value, label: grouped(plain(Math.abs(value) < step * 1e-6 ? 0 : value)) });
  }
  return { of: (value) => (value - low) / (high - low), ticks };
};

const logarithmic = (values, many) => {
  let [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
  const room = Math.max(0.03, (high - low) * 0.02);
  [low, high] = [low - room, high + room];
  if (high - low < 0.5) [low, high] = [low - (0.5 - high + low) / 2, high + (0.5 - high + low) / 2];
  const ticks = [];
  const decades = high - low;
  const labelled = decades > many ? [1] : decades > 2.2 ? [1, 3] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  const mantissas = [...new Set([...labelled, 1, 2, 3, 4, 5, 6, 7, 8, 9])].sort((a, b) => a - b);
  for (let k = Math.floor(low); k <= Math.ceil(high); k += 1) {
    for (const m of mantissas) {
      const at = k + Math.log10(m);
      if (at < low || at > high) continue;
      ticks.push({ value: m * 10 ** k, label: labelled.includes(m) ? grouped(plain(m * 10 ** k)) : '' });
    }
  }
  return { of: (value) => (Math.log10(value) - low) / (high - low), ticks };
};

// Per cent by what lies beyond: as far from 90 to 99 as from 99 to 99.9.
const TAIL = [0, 50, 90, 99, 99.9, 99.99];
const tail = (values) => {
  const place = (value) => -Math.log10(1 - value / 100);
  const end = place(Math.max(...values, 50));
  const ticks = TAIL.filter((value) => place(value) <= end + 1e-9).map((value) => ({ value, label: value === 0 ? 'min' : `P${value}` }));
  return { of: (value) => place(value) / end, ticks };
};

// Long latencies are easier to read as times than as microseconds.
const asTimes = (unit, values) => (unit === 'us' || unit === 'µs') && Math.max(...values) >= 2e4;
const timeLabel = (us) => {
  const [name, size] = [['s', 1e6], ['ms', 1e3], ['µs', 1]].find(([, unit]) => Math.abs(us) >= unit) || ['µs', 1];
  return us === 0 ? '0' : `${plain(us / size)} ${name}`;
};

// Gives `of` (a share of the axis), `ticks`, and the `caption`.
const fit = (kind, axis, values, many) => {
  const fitted = values.length === 0 ? linear([0, 1], many)
    : kind === 'tail' ? tail(values)
      : kind === 'log' ? logarithmic(values, many) : linear(values, many, axis.zero);
  if (axis.ticks) return { ...fitted, ticks: axis.ticks.map(([value, label]) => ({ value, label })), caption: withBrackets(axis) };
  if (kind === 'tail' || !asTimes(axis.unit, values)) return { ...fitted, caption: withBrackets(axis) };
  const ticks = fitted.ticks.map(({ value, label }) => ({ value, label: label && timeLabel(value) }));
  return { ...fitted, ticks, caption: axis.name };
};

const withBrackets = ({ name, unit }) => (unit && unit !== '1' ? `${name} (${unitName(unit)})` : name);
