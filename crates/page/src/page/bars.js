// Bars: busy time of resources by cause, and histograms.

// A tooltip for nodes with data: `describe(node)` is its content, null for none.
const pointAt = (frame, image, describe) => {
  const tip = tooltip(frame);
  const show = (event) => {
    const content = describe(event.target);
    if (!content) {
      tip.hide();
      return;
    }
    const box = frame.getBoundingClientRect();
    tip.show(content, event.clientX - box.left, event.clientY - box.top);
  };
  image.addEventListener('pointermove', show);
  image.addEventListener('pointerdown', show);
  image.addEventListener('pointerleave', tip.hide);
};

const membersOf = (busy, row) => Math.min(busy.per_group, busy.count - row * busy.per_group);
const nameOf = (word, busy, row) => {
  const first = row * busy.per_group;
  return busy.per_group === 1 ? `${word} ${row}` : `${word}s ${first}–${first + membersOf(busy, row) - 1}`;
};

// `busy` is { count, per_group, busy_ns: [[by cause]] } over `simulated` ns.
const busyBars = (title, word, busy, simulated, causes, others = []) => {
  const frame = el('div', { class: 'chart bars' });
  const image = svg('svg', { role: 'img', 'aria-label': `${title}: share of the simulated time by cause` });
  frame.append(image);
  const members = (row) => membersOf(busy, row);
  // Room for the longest name of all charts in a column, so that axes align.
  const longest = Math.max(...others, ...busy.busy_ns.map((_, row) => nameOf(word, busy, row).length));
  const name = (row) => nameOf(word, busy, row);
  const share = (ns, row) => ns / (simulated * members(row));
  pointAt(frame, image, (node) => {
    if (!node.dataset.row) return null;
    const row = Number(node.dataset.row);
    const cause = node.dataset.cause;
    const used = busy.busy_ns[row].reduce((sum, ns) => sum + ns, 0);
    const ns = cause === 'idle' ? Math.max(0, simulated * members(row) - used) : busy.busy_ns[row][Number(cause)];
    return [el('strong', {}, name(row)), `${cause === 'idle' ? 'idle' : causes[Number(cause)]}: ${duration(ns)}, ${percent(share(ns, row))}`];
  });
  whenSized(frame, (width) => {
    const [pitch, thick] = busy.busy_ns.length > 24 ? [9, 7] : [20, 15];
    const left = 14 + 6.6 * longest;
    const right = 52;
    const wide = width - left - right;
    const height = busy.busy_ns.length * pitch + 24;
    const every = Math.ceil(12 / pitch);
    image.setAttribute('viewBox', `0 0 ${width} ${height}`);
    image.setAttribute('height', height);
    image.replaceChildren();
    busy.busy_ns.forEach((times, row) => {
      const y = row * pitch + 2;
      image.append(svg('rect', { class: 'idle', x: left, y, width: wide, height: thick, 'data-row': row, 'data-cause': 'idle' }));
      let x = left;
      times.forEach((ns, cause) => {
        if (ns === 0) return;
        const long = Math.min(share(ns, row) * wide, left + wide - x);
        image.append(svg('rect', { class: `c${cause}`, x, y, width: Math.max(0, long), height: thick, 'data-row': row, 'data-cause': cause }));
        x += long;
      });
      if (row % every) return;
      const total = times.reduce((sum, ns) => sum + ns, 0);
      image.append(
        svg('text', { class: 'tick', x: left - 8, y: y + thick / 2 + 4, 'text-anchor': 'end' }, name(row)),
        svg('text', { class: 'tick', x: left + wide + 6, y: y + thick / 2 + 4 }, percent(share(total, row))),
      );
    });
    for (const tick of [0, 25, 50, 75, 100]) {
      const x = left + (tick / 100) * wide;
      image.append(
        svg('line', { class: 'axis', x1: x, x2: x, y1: height - 21, y2: height - 17 }),
        svg('text', { class: 'tick', x, y: height - 4, 'text-anchor': 'middle' }, `${tick} %`),
      );
    }
  });
  return frame;
};

// `bars` are [least, greatest, blocks].
const wearBars = (bars) => {
  const frame = el('div', { class: 'chart bars' });
  const image = svg('svg', { role: 'img', 'aria-label': 'Number of blocks by how often they were erased' });
  frame.append(image);
  const range = ([least, greatest]) => (least === greatest ? `${least}` : `${least}–${greatest}`);
  pointAt(frame, image, (node) => {
    if (!node.dataset.bar) return null;
    const bar = bars[Number(node.dataset.bar)];
    return [el('strong', {}, `erased ${range(bar)} times`), `${count(bar[2])} blocks`];
  });
  whenSized(frame, (width) => {
    const [left, right, top, bottom] = [62, 12, 8, 40];
    const [wide, high] = [width - left - right, 110];
    const step = bars[0][1] - bars[0][0] + 1;
    const slots = (bars[bars.length - 1][0] - bars[0][0]) / step + 1;
    const pitch = wide / Math.max(slots, 8);
    const ys = linear([0, ...bars.map((bar) => bar[2])], 3);
    const height = top + high + bottom;
    image.setAttribute('viewBox', `0 0 ${width} ${height}`);
    image.setAttribute('height', height);
    image.replaceChildren();
    for (const { value, label } of ys.ticks) {
      if (!Number.isInteger(value)) continue;
      const y = top + (1 - ys.of(value)) * high;
      image.append(
        svg('line', { class: 'grid', x1: left, x2: left + wide, y1: y, y2: y }),
        svg('text', { class: 'tick', x: left - 8, y: y + 4, 'text-anchor': 'end' }, label),
      );
    }
    let taken = -Infinity;
    bars.forEach((bar, index) => {
      const x = left + ((bar[0] - bars[0][0]) / step) * pitch;
      const tall = Math.max(1, ys.of(bar[2]) * high);
      image.append(svg('rect', { class: 'wear', x: x + 1, y: top + high - tall, width: Math.max(1, pitch - 2), height: tall, 'data-bar': index }));
      const half = range(bar).length * 3.3;
      if (x + pitch / 2 - half > taken + 4) {
        image.append(svg('text', { class: 'tick', x: x + pitch / 2, y: top + high + 15, 'text-anchor': 'middle' }, range(bar)));
        taken = x + pitch / 2 + half;
      }
    });
    image.append(
      svg('line', { class: 'axis', x1: left, x2: left + wide, y1: top + high, y2: top + high }),
      svg('text', { x: left + wide / 2, y: height - 6, 'text-anchor': 'middle' }, 'erasures of a block'),
      svg('text', { transform: `translate(11 ${top + high / 2}) rotate(-90)`, 'text-anchor': 'middle' }, 'blocks'),
    );
  });
  return frame;
};
