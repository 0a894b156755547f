// What is shown of the points: filters, the front, the point that is chosen. Without a view.
//
// Columns are { name, unit, role: 'input' | 'objective' | 'metric', goal: 'min' | 'max', words }.
// Of a column with words, a value is the position of its word. A value that is missing is null.

const explorer = (data) => {
  const { columns, rows } = data;
  const filters = new Map();
  const goals = new Map(columns.map((column, c) => [c, column.goal]).filter(([, goal]) => goal));
  const listeners = [];
  const state = { chosen: null, onlyFront: false, filters, goals, shown: [], front: new Set() };

  const passes = (row) => {
    for (const [c, filter] of filters) {
      const value = row[c];
      if (value === null) return false;
      if (filter.words ? !filter.words.has(value) : value < filter.low || value > filter.high) return false;
    }
    return true;
  };

  // What no other of the points beats in every objective: as good everywhere, better somewhere.
  const frontOf = (candidates) => {
    const aims = [...goals];
    if (aims.length === 0) return new Set();
    const costs = candidates
      .map((index) => [index, aims.map(([c, goal]) => { const v = rows[index][c]; return v === null ? null : goal === 'min' ? v : -v; })])
      .filter(([, cost]) => !cost.includes(null));
    // In the order of the first objectives, nobody is beaten by one that comes later.
    costs.sort(([, a], [, b]) => { for (let k = 0; k < a.length; k += 1) if (a[k] !== b[k]) return a[k] - b[k]; return 0; });
    const front = [];
    const beats = (a, b) => a.every((value, k) => value <= b[k]) && a.some((value, k) => value < b[k]);
    for (const one of costs) if (!front.some(([, other]) => beats(other, one[1]))) front.push(one);
    return new Set(front.map(([index]) => index));
  };

  const update = (what) => {
    const passing = rows.map((_, index) => index).filter((index) => passes(rows[index]));
    state.front = frontOf(passing);
    state.shown = state.onlyFront ? passing.filter((index) => state.front.has(index)) : passing;
    listeners.forEach((listener) => listener(what));
  };
  state.onChange = (listener) => listeners.push(listener);
  state.update = update;
  state.filter = (c, filter) => {
    if (filter === null) filters.delete(c);
    else filters.set(c, filter);
    update('filter');
  };
  state.choose = (index) => {
    state.chosen = index;
    listeners.forEach((listener) => listener('choice'));
  };
  return state;
};

// The least and the greatest value of a column; null without any.
const extentOf = (rows, c) => {
  let [low, high] = [Infinity, -Infinity];
  for (const row of rows) {
    const value = row[c];
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
};

// A value as it reads: with its unit, or its word.
const valueText = (column, value) => {
  if (value === null) return '–';
  if (column.words) return column.words[value];
  if (column.unit === 'ns') return duration(value);
  if (column.unit === 'B') return bytes(value);
  const text = Number.isInteger(value) && Math.abs(value) < 1e9 ? grouped(String(value)) : number(value);
  return withUnit(text, column.unit);
};
// The same at an axis, without zeros that say nothing, and without a unit that its name says.
const shortText = (column, value) => {
  if (column.unit === 'ns' || column.unit === 'B') return valueText(column, value).replace(/\.0+ /, ' ').replace(/(\.\d*?)0+ /, '$1 ');
  return grouped(plain(value));
};
const headOf = (column) => {
  const goal = column.goal ? `${column.goal} ` : '';
  return `${goal}${column.name}`;
};
// With its unit, unless values say theirs.
const captionOf = (column) => (column.words || column.unit === 'ns' || column.unit === 'B' ? column.name : withBrackets(column));
