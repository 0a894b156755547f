// Zone states over time: one row for each zone, coloured by state.

const zoneMap = (map) => {
  const frame = el('div', { class: 'chart bars zonemap' });
  const image = svg('svg', { role: 'img', 'aria-label': 'States of zones over time' });
  frame.append(image);
  const runs = map.rows.map((row) => {
    let at = 0;
    return [...row.matchAll(/([A-Z])(\d+)/g)].map(([, state, length]) => {
      const from = at;
      at += Number(length);
      return { state, from, to: at };
    });
  });
  const label = ([first, last]) => (first === last ? `zone ${first}` : `zones ${first}–${last}`);
  const longest = Math.max(...map.labels.map((ends) => label(ends).length));
  const time = (column) => (column / map.columns) * map.to_ns;
  pointAt(frame, image, (node) => {
    if (!node.dataset.row) return null;
    const run = runs[Number(node.dataset.row)][Number(node.dataset.run)];
    return [
      el('strong', {}, `${label(map.labels[Number(node.dataset.row)])}: ${STATES[run.state]}`),
      `${duration(time(run.from))} to ${duration(time(run.to))}`,
    ];
  });
  whenSized(frame, (width) => {
    const pitch = Math.max(4, Math.min(18, Math.floor(420 / map.rows.length)));
    const [left, right] = [14 + 6.6 * longest, 22];
    const wide = width - left - right;
    // Room above for half of the first label.
    const top = 6;
    const bottom = top + map.rows.length * pitch;
    image.setAttribute('viewBox', `0 0 ${width} ${bottom + 42}`);
    image.setAttribute('height', bottom + 42);
    image.replaceChildren();
    let taken = -Infinity;
    runs.forEach((row, index) => {
      const y = top + index * pitch;
      row.forEach((run, position) => {
        const x = left + (run.from / map.columns) * wide;
        const long = ((run.to - run.from) / map.columns) * wide;
        image.append(svg('rect', { class: `z${run.state}`, x, y, width: long, height: Math.max(1, pitch - 1), 'data-row': index, 'data-run': position }));
      });
      if (y >= taken) {
        image.append(svg('text', { class: 'tick', x: left - 6, y: y + pitch / 2 + 4, 'text-anchor': 'end' }, label(map.labels[index])));
        taken = y + 13;
      }
    });
    const xs = linear([0, map.to_ns / 1e9], Math.max(2, Math.floor(width / 110)));
    for (const { value, label: text } of xs.ticks) {
      if (value * 1e9 > map.to_ns * 1.0001) continue;
      const x = left + ((value * 1e9) / map.to_ns) * wide;
      image.append(
        svg('line', { class: 'axis', x1: x, x2: x, y1: bottom, y2: bottom + 5 }),
        svg('text', { class: 'tick', x, y: bottom + 18, 'text-anchor': 'middle' }, text),
      );
    }
    image.append(
      svg('line', { class: 'axis', x1: left, x2: left + wide, y1: bottom, y2: bottom }),
      svg('text', { x: left + wide / 2, y: bottom + 36, 'text-anchor': 'middle' }, 'time (s)'),
    );
  });
  const present = Object.keys(STATES).filter((state) => map.rows.some((row) => row.includes(state)));
  const legend = el('div', { class: 'legend' }, present.map((state) => swatch(`z${state}`, STATES[state])));
  const shared = map.rows.length < map.zones ? ` Up to ${Math.ceil(map.zones / map.rows.length)} zones share a row.` : '';
  const note = el('p', { class: 'soft small' },
    `${count(map.zones)} zones changed state, ${count(map.records)} times. A cell shows the state that lasted longest in it.${shared}`);
  const dropped = map.dropped > 0
    ? el('p', { class: 'notice small dropped' }, `${count(map.dropped)} later changes were not recorded: from the last one shown on, the picture may be wrong.`)
    : null;
  return el('div', {}, frame, legend, note, dropped);
};
