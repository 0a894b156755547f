// Wear: blocks or storage elements by how often they were erased.

const WEAR_LEVELS = 7;

// `map` is { unit, columns, per_cell, rows: [{ planes, cells }], max, ... }.
const wearMap = (map) => {
  const frame = el('div', { class: 'chart bars' });
  const image = svg('svg', { role: 'img', 'aria-label': `Erasures of each ${map.unit}, plane by plane` });
  frame.append(image);
  const rows = map.rows.map(({ planes, cells }) => {
    let at = 0;
    const runs = cells.split(' ').filter((run) => run).map((run) => {
      const [value, times] = run.split('*');
      const from = at;
      at += Number(times || 1);
      return { value: Number(value), from, to: at };
    });
    return { planes, runs, cells: at };
  });
  const greatest = Math.ceil(Math.max(...rows.flatMap((row) => row.runs.map((run) => run.value))));
  // Level 0 is what was never erased, the others share the rest equally.
  const step = Math.max(1, Math.ceil(greatest / WEAR_LEVELS));
  const level = (value) => Math.ceil(value / step);
  // The last level has the last colour, however few there are.
  const look = (of) => `w${Math.ceil((of * WEAR_LEVELS) / Math.max(1, level(greatest)))}`;
  const isExact = map.per_cell === 1 && rows.every((row) => row.runs.every((run) => Number.isInteger(run.value)));
  const label = ([first, last]) => (first === last ? `plane ${first}` : `planes ${first}–${last}`);
  const longest = Math.max(...rows.map((row) => label(row.planes).length));
  pointAt(frame, image, (node) => {
    if (!node.dataset.row) return null;
    const row = rows[Number(node.dataset.row)];
    const run = row.runs[Number(node.dataset.run)];
    const [first, last] = [run.from * map.per_cell, Math.min(run.to * map.per_cell, map.columns) - 1];
    const which = first === last ? `${map.unit} ${first}` : `${map.unit}s ${first}–${last}`;
    return [el('strong', {}, `${label(row.planes)}, ${which}`), `erased ${plain(run.value)} times${isExact ? '' : ' on average'}`];
  });
  whenSized(frame, (width) => {
    const [left, right, gap] = [14 + 6.6 * longest, 12, 4];
    const wide = width - left - right;
    // Rows are broken into lines of equal length, of cells that can be told apart.
    const most = Math.max(...rows.map((row) => row.cells), 1);
    const linesOf = (cells) => Math.max(1, Math.ceil(cells / perLine));
    let perLine = Math.max(1, Math.floor(wide / 6));
    perLine = Math.ceil(most / linesOf(most));
    const lines = rows.reduce((sum, row) => sum + linesOf(row.cells), 0);
    const pitch = Math.max(5, Math.min(16, Math.floor(300 / lines)));
    const cell = Math.min(16, wide / perLine);
    image.replaceChildren();
    let [top, taken] = [6, -Infinity];
    rows.forEach((row, index) => {
      row.runs.forEach((run, position) => {
        for (let line = Math.floor(run.from / perLine); line * perLine < run.to; line += 1) {
          const from = Math.max(run.from - line * perLine, 0);
          const to = Math.min(run.to - line * perLine, perLine);
          image.append(svg('rect', {
            class: look(level(run.value)), x: left + from * cell, y: top + line * pitch, width: (to - from) * cell, height: pitch - 1,
            'data-row': index, 'data-run': position,
          }));
        }
      });
      if (top >= taken) {
        image.append(svg('text', { class: 'tick', x: left - 6, y: top + Math.min(pitch, 10) / 2 + 4, 'text-anchor': 'end' }, label(row.planes)));
        taken = top + 13;
      }
      top += linesOf(row.cells) * pitch + gap;
    });
    image.setAttribute('viewBox', `0 0 ${width} ${top}`);
    image.setAttribute('height', top);
  });
  const range = (of) => {
    if (of === 0) return 'never';
    const [least, last] = [(of - 1) * step + 1, Math.min(of * step, greatest)];
    if (!isExact) return `up to ${last}`;
    return least === last ? `${least}` : `${least}–${last}`;
  };
  const levels = new Set(rows.flatMap((row) => row.runs.map((run) => level(run.value))));
  const legend = el('div', { class: 'legend' }, el('span', { class: 'key' }, 'erasures'),
    [...levels].sort((a, b) => a - b).map((of) => swatch(look(of), range(of))));
  const shared = map.per_cell > 1 ? ` ${map.per_cell} neighbours share a cell, which has their mean.` : '';
  const planes = rows.some(({ planes: [first, last] }) => first !== last) ? 'plane, or planes together' : 'plane';
  const note = none(
    `For each ${planes}, its ${map.unit}s in order: ${count(map.columns)}, from left to right and line by line.${shared} The colours are those of this point alone.`);
  return el('div', {}, frame, legend, note);
};

const wearFacts = (map) =>
  none(`Erasures of a block: median ${count(map.median)}, mean ${number(map.mean)}, standard deviation ${number(map.deviation)}, maximum ${count(map.max)}.`);
