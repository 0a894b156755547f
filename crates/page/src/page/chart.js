// Line charts with a pointer.
//
// A chart is { label, x, y, series, height, tip, pick }.
//   x, y    { name, unit, kind: 'linear' | 'log' | 'tail', fixed }
//   series  [{ name, look, line, points: [{ ours: [x, y], published: [x, y], thin }] }]
//           with `line`, points have no markers; `thin` dashes the line to a point
//           a point may have a `band`: [low, high] of y
//           a point may have a `key` by which it is known when it is made anew
//   tip     content of the tooltip for (series, point)
//   pick    called when a point is chosen

let charts = 0;

const colour = (look) => `s${look % 8}`;

const chart = (spec, marks) => {
  charts += 1;
  const id = `chart-${charts}`;
  const kinds = { x: spec.x.kind, y: spec.y.kind };
  const hidden = new Set();
  const frame = el('div', { class: spec.pick ? 'chart picks' : 'chart', id });
  const image = svg('svg', { tabindex: 0, role: 'img', 'aria-label': `${spec.label}. Arrow keys go from point to point${spec.pick ? ', Enter shows what happened inside' : ''}.` });
  frame.append(image);
  const tip = tooltip(frame);
  let drawn = [];
  let hover = null;

  const shown = () => spec.series.filter((series) => !hidden.has(series.name));
  const places = (point) => [point.ours, point.published].filter(Boolean);
  const hasPlace = ([x, y]) =>
    [['x', x], ['y', y]].every(([axis, value]) => Number.isFinite(value) && (kinds[axis] !== 'log' || value > 0));

  // Both ends of the interval of a point that has one and a place.
  const bandOf = ({ ours, band }) => {
    if (!band || !ours || !hasPlace(ours)) return [];
    return band.map((end) => (kinds.y !== 'log' || end > 0 ? end : ours[1]));
  };

  const focus = (candidate) => {
    if (hover && candidate && hover.point === candidate.point && hover.kind === candidate.kind) return;
    hover = candidate;
    image.querySelectorAll('.hit, .tie').forEach((node) => node.remove());
    if (!candidate) {
      tip.hide();
      return;
    }
    const { series, point } = candidate;
    const at = drawn.filter((other) => other.point === point && other.series === series);
    const group = image.querySelector('.over');
    if (at.length === 2) {
      group.append(svg('line', { class: `tie ${colour(series.look)}`, x1: at[0].x, y1: at[0].y, x2: at[1].x, y2: at[1].y }));
    }
    at.forEach(({ x, y }) => group.append(svg('circle', { class: 'hit', cx: x, cy: y, r: 7 })));
    tip.show(spec.tip(series, point), candidate.x, candidate.y);
  };

  const draw = (width) => {
    focus(null);
    const height = Math.min(spec.height, Math.max(200, width * 0.75));
    const all = shown().flatMap((series) => series.points).flatMap(places).filter(hasPlace);
    const bands = shown().flatMap((series) => series.points).flatMap(bandOf);
    const xs = fit(kinds.x, spec.x, all.map(([x]) => x), Math.max(2, Math.floor(width / 110)));
    const ys = fit(kinds.y, spec.y, [...all.map(([, y]) => y), ...bands], 6);
    const widest = Math.max(...ys.ticks.map(({ label }) => label.length), 1);
    const [left, right, top, bottom] = [30 + widest * 6.9, 22, 10, 44];
    const [wide, high] = [width - left - right, height - top - bottom];
    const atX = (value) => left + xs.of(value) * wide;
    const atY = (value) => top + (1 - ys.of(value)) * high;
    image.setAttribute('viewBox', `0 0 ${width} ${height}`);
    image.setAttribute('height', height);
    const back = svg('g', {});
    let taken = -Infinity;
    for (const { value, label } of xs.ticks) {
      const x = atX(value);
      if (label) back.append(svg('line', { class: 'grid', x1: x, x2: x, y1: top, y2: top + high }));
      back.append(svg('line', { class: 'axis', x1: x, x2: x, y1: top + high, y2: top + high + (label ? 5 : 2.5) }));
      const half = label.length * 3.3;
      if (label && x - half > taken + 4) {
        back.append(svg('text', { class: 'tick', x, y: top + high + 18, 'text-anchor': 'middle' }, label));
        taken = x + half;
      }
    }
    taken = Infinity;
    for (const { value, label } of ys.ticks) {
      const y = atY(value);
      if (label) back.append(svg('line', { class: 'grid', x1: left, x2: left + wide, y1: y, y2: y }));
      back.append(svg('line', { class: 'axis', x1: left - (label ? 5 : 2.5), x2: left, y1: y, y2: y }));
      if (label && taken - y > 12) {
        back.append(svg('text', { class: 'tick', x: left - 8, y: y + 4, 'text-anchor': 'end' }, label));
        taken = y;
      }
    }
    back.append(
      svg('line', { class: 'axis', x1: left, x2: left + wide, y1: top + high, y2: top + high }),
      svg('line', { class: 'axis', x1: left, x2: left, y1: top, y2: top + high }),
      svg('text', { x: left + wide / 2, y: height - 6, 'text-anchor': 'middle' }, xs.caption),
      svg('text', { transform: `translate(13 ${top + high / 2}) rotate(-90)`, 'text-anchor': 'middle' }, ys.caption),
    );
    // Below all lines, so that no band hides one.
    for (const series of shown()) {
      const known = series.points.filter((point) => bandOf(point).length > 0);
      if (known.length === 0) continue;
      const at = (end) => (point) => `${atX(point.ours[0]).toFixed(2)},${atY(bandOf(point)[end]).toFixed(2)}`;
      const corners = [...known.map(at(1)), ...known.map(at(0)).reverse()];
      back.append(svg('polygon', { class: `band ${colour(series.look)}`, points: corners.join(' ') }));
    }
    drawn = [];
    let missing = 0;
    const groups = shown().map((series) => {
      const group = svg('g', { class: `series ${colour(series.look)}${series.line ? '' : ' dashed'}`, 'data-series': series.name });
      const look = marks[series.look % marks.length];
      let path = [];
      const flush = (thin) => {
        if (path.length > 1) group.append(svg('polyline', { class: thin ? 'line thin' : 'line', points: path.join(' ') }));
      };
      let thin = false;
      const dots = [];
      for (const point of series.points) {
        for (const kind of ['ours', 'published']) {
          const value = point[kind];
          if (!value) continue;
          if (!hasPlace(value)) {
            // A point without a place breaks the line: a bridge would invent one.
            if (kind === 'ours') {
              flush(thin);
              path = [];
            }
            missing += 1;
            continue;
          }
          const [x, y] = [atX(value[0]), atY(value[1])];
          drawn.push({ series, point, kind, x, y });
          if (kind === 'ours') {
            if (Boolean(point.thin) !== thin) {
              flush(thin);
              path = path.slice(-1);
              thin = Boolean(point.thin);
            }
            path.push(`${x.toFixed(2)},${y.toFixed(2)}`);
          }
          if (!series.line) {
            const d = look[kind === 'ours' ? 0 : 1];
            dots.push(svg('path', { class: kind === 'ours' ? 'dot' : 'ring', d, transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})` }));
          }
        }
      }
      flush(thin);
      group.append(...dots);
      return group;
    });
    if (all.length === 0) back.append(svg('text', { x: left + wide / 2, y: top + high / 2, 'text-anchor': 'middle' }, 'no data'));
    image.replaceChildren(back, ...groups, svg('g', { class: 'over' }));
    note.textContent = missing ? `${missing} points have no place on these axes.` : '';
  };

  const nearest = (event, reach) => {
    const box = image.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const candidate of drawn) {
      const distance = Math.hypot(candidate.x - x, candidate.y - y);
      if (distance <= reach && (!best || distance < best.distance)) best = { ...candidate, distance };
    }
    return best;
  };
  // A finger that is lifted leaves: what it pointed at stays until the next
  // tap, and only a second tap on the same point chooses it.
  let tapped = null;
  image.addEventListener('pointermove', (event) => focus(nearest(event, 60)));
  image.addEventListener('pointerdown', (event) => {
    const was = hover && hover.point;
    focus(nearest(event, 60));
    tapped = event.pointerType === 'touch' && (!hover || hover.point !== was);
  });
  image.addEventListener('pointerleave', (event) => { if (event.pointerType !== 'touch') focus(null); });
  image.addEventListener('blur', () => focus(null));
  image.addEventListener('click', (event) => {
    const found = nearest(event, 40);
    if (found && spec.pick && !tapped) spec.pick(found.point);
  });
  image.addEventListener('keydown', (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (event.key === 'Escape') focus(null);
    if (event.key === 'Enter' && hover && spec.pick) spec.pick(hover.point);
    if (!step || drawn.length === 0) return;
    event.preventDefault();
    const lines = shown().map((series) => drawn.filter((at) => at.series === series && (at.kind === 'ours' || !at.point.ours))).filter((line) => line.length);
    if (lines.length === 0) return;
    const row = hover ? lines.findIndex((line) => line[0].series === hover.series) : -1;
    const line = lines[row < 0 ? 0 : (row + step[1] + lines.length) % lines.length];
    const was = row < 0 ? -1 : lines[row].findIndex((at) => at.point === hover.point);
    const now = Math.max(0, Math.min(line.length - 1, was < 0 ? 0 : was + step[0]));
    focus(line[now]);
  });

  // Draws what the series have become. What was pointed at stays so, if it is
  // still there: a point that is made anew is known by its key.
  const again = () => {
    const was = hover;
    if (frame.clientWidth === 0) return;
    draw(Math.floor(frame.clientWidth));
    const same = (point) => point === was.point || (point.key !== undefined && point.key === was.point.key);
    if (was) focus(drawn.find((at) => at.series.name === was.series.name && at.kind === was.kind && same(at.point)) ?? null);
  };
  const note = el('p', { class: 'soft small' });
  whenSized(frame, draw);
  return { frame, note, redraw: again, tools: axisTools(spec, kinds, again), legend: legend(spec, hidden, marks, again) };
};

// Check boxes for logarithmic axes, where all values are positive.
const axisTools = (spec, kinds, again) => {
  const box = (axis) => {
    const index = axis === 'x' ? 0 : 1;
    const values = spec.series.flatMap((series) => series.points)
      .flatMap((point) => [point.ours, point.published].filter(Boolean))
      .map((at) => at[index]);
    if (kinds[axis] === 'tail' || spec[axis].fixed || values.length === 0 || values.some((value) => value <= 0)) return null;
    const input = el('input', { type: 'checkbox', 'data-axis': axis, checked: kinds[axis] === 'log' });
    input.addEventListener('change', () => {
      kinds[axis] = input.checked ? 'log' : 'linear';
      again();
    });
    return el('label', {}, input, `log ${axis}`);
  };
  const hint = spec.pick ? el('span', { class: 'soft' }, 'Choose a point to see inside its run.') : null;
  return el('div', { class: 'tools' }, box('x'), box('y'), hint);
};

// One button for each series; what is published is hollow everywhere.
const legend = (spec, hidden, marks, again) => {
  const sample = (look, kinds, own) => {
    const image = svg('svg', { width: 26, height: 14, viewBox: '-13 -7 26 14', 'aria-hidden': 'true', class: `sample ${own}` });
    if (kinds.includes('ours')) {
      image.append(svg('line', { class: 'line', x1: -13, x2: 13, y1: 0, y2: 0 }));
      if (!kinds.includes('line')) image.append(svg('path', { class: 'dot', d: look[0] }));
    }
    if (kinds.includes('published')) image.append(svg('path', { class: 'ring', d: look[1] }));
    return image;
  };
  const list = el('div', { class: 'legend' });
  for (const series of spec.series) {
    const kinds = ['ours', 'published'].filter((kind) => series.points.some((point) => point[kind]));
    const own = kinds.includes('ours') ? ['ours', series.line ? 'line' : ''] : kinds;
    const button = el('button', { type: 'button', 'aria-pressed': 'true', 'data-series': series.name },
      sample(marks[series.look % marks.length], own, `${colour(series.look)}${series.line ? '' : ' dashed'}`), el('span', { class: 'name' }, series.name));
    button.addEventListener('click', () => {
      if (!hidden.delete(series.name)) hidden.add(series.name);
      button.setAttribute('aria-pressed', String(!hidden.has(series.name)));
      again();
    });
    list.append(button);
  }
  if (spec.series.some((series) => series.points.some((point) => point.published))) {
    list.append(el('span', { class: 'key' },
      sample(marks[0], ['ours'], 's6'), 'zonelab', sample(marks[0], ['published'], 's6'), 'published'));
  }
  return list;
};
