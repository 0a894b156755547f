// Parallel coordinates and a scatter plot, on canvases: thousands of points stay fluent.

// Columns with no more values than this have a label at each.
const FEW_VALUES = 9;

// Sizes are powers of two, or on an even scale multiples of one.
const sizeTicks = (column, [low, high], many, log) => {
  const tick = (value) => ({ value, label: shortText(column, value) });
  if (log) {
    const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
    const step = Math.max(1, Math.ceil((last - first + 1) / (many + 2)));
    return Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, n) => tick(2 ** (first + n * step)));
  }
  const step = 2 ** Math.ceil(Math.log2((high - low) / many));
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, n) => tick((first + n) * step));
};

// The scale of a column: where a value lies, 0 to 1, and labels. Values of a wide range are
// spread by their logarithm.
const columnScale = (data, c, many) => {
  const column = data.columns[c];
  if (column.words) {
    const last = Math.max(column.words.length - 1, 1);
    const ticks = column.words.map((label, value) => ({ value, label }));
    const of = column.words.length === 1 ? () => 0.5 : (value) => value / last;
    return { of, back: (share) => share * last, ticks, log: false };
  }
  const extent = extentOf(data.rows, c) || [0, 1];
  const [low, high] = extent[0] === extent[1] ? [extent[0] - Math.abs(extent[0] / 2) - 1e-9, extent[1] + Math.abs(extent[1] / 2) + 1e-9] : extent;
  const log = low > 0 && high / low > 30;
  const forth = log ? Math.log : (value) => value;
  const back = log ? Math.exp : (value) => value;
  const [from, to] = [forth(low), forth(high)];
  const each = [...new Set(data.rows.map((row) => row[c]))].filter((value) => value !== null);
  if (each.length <= FEW_VALUES) {
    const few = each.sort((a, b) => a - b).map((value) => ({ value, label: shortText(column, value) }));
    return { of: (value) => (forth(value) - from) / (to - from), back: (share) => back(from + share * (to - from)), ticks: few, log };
  }
  if (column.unit === 'B') return { of: (value) => (forth(value) - from) / (to - from), back: (share) => back(from + share * (to - from)), ticks: sizeTicks(column, [low, high], many, log), log };
  const fitted = log ? logarithmic([low, high], many) : linear([low, high], many);
  const ticks = fitted.ticks
    .filter(({ value, label }) => label && value >= low - (high - low) * 1e-9 && value <= high + (high - low) * 1e-9)
    .map(({ value, label }) => ({ value, label: column.unit === 'ns' ? shortText(column, value) : label }));
  return { of: (value) => (forth(value) - from) / (to - from), back: (share) => back(from + share * (to - from)), ticks, log };
};

// Colours by the values of a column: a ramp for numbers, distinct ones for words.
const RAMP = ['--w2', '--w3', '--w4', '--w5', '--w6', '--w7'];
const coloursOf = (data, c) => {
  const style = getComputedStyle(document.documentElement);
  const look = (name) => style.getPropertyValue(name).trim();
  const column = data.columns[c];
  const names = column.words ? column.words.map((_, n) => `--s${n % 8}`) : RAMP;
  const scale = columnScale(data, c, 4);
  const bucket = (value) => {
    if (value === null) return 0;
    return column.words ? value : Math.min(RAMP.length - 1, Math.floor(scale.of(value) * RAMP.length));
  };
  return { names, look, bucket, scale, colours: names.map(look), text: look('--text'), soft: look('--soft'), faint: look('--faint'), line: look('--line'), focus: look('--focus'), page: look('--page') };
};

// A canvas that is sharp on any screen; `draw(context, width)` draws it.
const sharp = (canvas, width, height, draw) => {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";
  draw(context);
};

// `text`, so short that it is at most `room` wide.
const clipped = (context, text, room) => {
  if (context.measureText(text).width <= room) return text;
  let kept = text;
  while (kept.length > 1 && context.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
};

const AXIS_LEAST = 92;

const parallel = (data, state, view) => {
  const canvas = el('canvas', { tabindex: 0, role: 'img', id: 'parallel' });
  const frame = el('div', { class: 'plot scroll' }, canvas);
  const [top, bottom, height] = [46, 22, 340];
  let axes = [];
  let drag = null;
  const y = (share) => top + (1 - share) * (height - top - bottom);
  const shareAt = (at) => Math.max(0, Math.min(1, 1 - (at - top) / (height - top - bottom)));

  const path = (context, index) => {
    let pen = false;
    for (const { c, x, scale } of axes) {
      const value = data.rows[index][c];
      if (value === null) { pen = false; continue; }
      const at = y(scale.of(value));
      if (pen) context.lineTo(x, at);
      else context.moveTo(x, at);
      pen = true;
    }
  };
  const stroke = (context, indices, colour, width, alpha) => {
    context.beginPath();
    indices.forEach((index) => path(context, index));
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.globalAlpha = alpha;
    context.stroke();
    context.globalAlpha = 1;
  };
  const drawAxis = (context, { c, x, scale, room }, look) => {
    context.fillStyle = look.text;
    context.textAlign = 'center';
    const name = captionOf(data.columns[c]);
    // On two lines if it needs them.
    const words = name.split(/(?<=[ /_.])/);
    let first = '';
    while (words.length > 0 && (first === '' || context.measureText(first + words[0]).width <= room)) first += words.shift();
    context.fillText(clipped(context, first.trim(), room), x, 14);
    if (words.length > 0) context.fillText(clipped(context, words.join('').trim(), room), x, 28);
    const goal = state.goals.get(c);
    if (goal) { context.fillStyle = look.soft; context.fillText(goal === 'min' ? 'less is better ↓' : 'more is better ↑', x, height - 5); }
    context.strokeStyle = look.soft;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y(0));
    context.lineTo(x, y(1));
    context.stroke();
    context.textAlign = 'left';
    let taken = Infinity;
    for (const { value, label } of scale.ticks) {
      const at = y(scale.of(value));
      if (taken - at < 14) continue;
      taken = at;
      const text = clipped(context, label, room - 14);
      context.fillStyle = look.page;
      context.globalAlpha = 0.75;
      context.fillRect(x + 5, at - 7, context.measureText(text).width + 4, 13);
      context.globalAlpha = 1;
      context.fillStyle = look.text;
      context.fillText(text, x + 7, at + 4);
      context.fillRect(x - 3, at - 0.5, 7, 1);
    }
    const filter = state.filters.get(c);
    if (filter) {
      context.fillStyle = look.focus;
      const [low, high] = filter.words ? [Math.min(...filter.words), Math.max(...filter.words)] : [filter.low, filter.high];
      const ends = [Math.max(0, scale.of(low)), Math.min(1, scale.of(high))].map(y);
      context.globalAlpha = 0.3;
      context.fillRect(x - 7, ends[1] - (filter.words ? 6 : 1), 14, ends[0] - ends[1] + (filter.words ? 12 : 2));
      context.globalAlpha = 1;
    }
  };
  const draw = () => {
    const wide = Math.max(Math.floor(frame.clientWidth), 200);
    const shown = view.axes.length;
    const width = Math.max(wide, shown * AXIS_LEAST);
    const room = width / Math.max(shown, 1);
    axes = view.axes.map((c, n) => ({ c, x: room * (n + 0.5), scale: columnScale(data, c, 5), room: room - 10 }));
    const look = coloursOf(data, view.colour);
    const visible = new Set(state.shown);
    sharp(canvas, width, height, (context) => {
      stroke(context, data.rows.map((_, index) => index).filter((index) => !visible.has(index)), look.faint, 1, 1);
      const buckets = look.colours.map(() => []);
      state.shown.forEach((index) => buckets[look.bucket(data.rows[index][view.colour]) % buckets.length].push(index));
      const alpha = Math.max(0.25, Math.min(0.9, 150 / Math.max(state.shown.length, 1)));
      buckets.forEach((indices, n) => stroke(context, indices, look.colours[n], 1.1, alpha));
      if (!state.onlyFront) stroke(context, [...state.front], look.text, 1.4, 0.8);
      if (state.chosen !== null) stroke(context, [state.chosen], look.focus, 3.5, 1);
      axes.forEach((axis) => drawAxis(context, axis, look));
    });
    canvas.setAttribute('aria-label', `Parallel coordinates of ${shown} columns, ${count(state.shown.length)} points. Drag along an axis to filter; the same filters are below as fields.`);
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const brush = (from, to, axis) => {
    const { c, scale } = axis;
    const [low, high] = [from, to].map(shareAt).sort((a, b) => a - b);
    const column = data.columns[c];
    if (column.words) {
      const words = column.words.map((_, n) => n).filter((n) => scale.of(n) >= low - 0.02 && scale.of(n) <= high + 0.02);
      state.filter(c, words.length > 0 ? { words: new Set(words) } : null);
    } else {
      // An end of the axis is the end of its values, whatever rounding says.
      const [least, most] = extentOf(data.rows, c) || [0, 0];
      state.filter(c, { low: low <= 0 ? least : scale.back(low), high: high >= 1 ? most : scale.back(high) });
    }
  };
  canvas.addEventListener('pointerdown', (event) => {
    const [x, at] = place(event);
    const axis = axes.find((one) => Math.abs(one.x - x) <= 16);
    if (!axis) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    drag = { axis, from: at, moved: false };
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, at] = place(event);
    canvas.style.cursor = axes.some((one) => Math.abs(one.x - x) <= 16) ? 'ns-resize' : 'default';
    if (!drag) return;
    if (Math.abs(at - drag.from) > 4) drag.moved = true;
    if (drag.moved) brush(drag.from, at, drag.axis);
  });
  canvas.addEventListener('pointerup', () => {
    // A click on an axis takes its filter away.
    if (drag && !drag.moved) state.filter(drag.axis.c, null);
    drag = null;
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  whenSized(frame, draw);
  return { frame, draw };
};

const scatter = (data, state, view) => {
  const canvas = el('canvas', { tabindex: 0, role: 'img', id: 'scatter' });
  const frame = el('div', { class: 'plot' }, canvas);
  const tip = tooltip(frame);
  let drawn = [];
  let hover = null;

  const draw = () => {
    const width = Math.max(Math.floor(frame.clientWidth), 200);
    const height = Math.min(440, Math.max(260, width * 0.7));
    const look = coloursOf(data, view.colour);
    const [xs, ys] = [columnScale(data, view.x, Math.max(2, width / 130)), columnScale(data, view.y, 6)];
    sharp(canvas, width, height, (context) => {
      const widest = Math.max(...ys.ticks.map(({ label }) => context.measureText(label).width), 10);
      const [left, right, top, bottom] = [Math.min(widest, width / 4) + 34, 18, 12, 42];
      const [wide, high] = [width - left - right, height - top - bottom];
      const atX = (value) => left + 6 + xs.of(value) * (wide - 12);
      const atY = (value) => top + 6 + (1 - ys.of(value)) * (high - 12);
      context.strokeStyle = look.faint;
      context.fillStyle = look.soft;
      context.textAlign = 'center';
      let taken = -Infinity;
      for (const { value, label } of xs.ticks) {
        const x = atX(value);
        context.beginPath(); context.moveTo(x, top); context.lineTo(x, top + high); context.stroke();
        const text = clipped(context, label, wide / 2);
        const half = context.measureText(text).width / 2;
        const at = Math.max(half + 2, Math.min(width - half - 2, x));
        if (at - half > taken + 6) { context.fillText(text, at, top + high + 15); taken = at + half; }
      }
      context.textAlign = 'right';
      taken = Infinity;
      for (const { value, label } of ys.ticks) {
        const y = atY(value);
        if (taken - y < 14) continue;
        taken = y;
        context.beginPath(); context.moveTo(left, y); context.lineTo(left + wide, y); context.stroke();
        context.fillText(clipped(context, label, left - 34), left - 7, y + 4);
      }
      context.strokeStyle = look.soft;
      context.beginPath(); context.moveTo(left, top); context.lineTo(left, top + high); context.lineTo(left + wide, top + high); context.stroke();
      context.fillStyle = look.text;
      context.textAlign = 'center';
      context.fillText(clipped(context, captionOf(data.columns[view.x]), wide), left + wide / 2, height - 8);
      context.save(); context.translate(13, top + high / 2); context.rotate(-Math.PI / 2);
      context.fillText(clipped(context, captionOf(data.columns[view.y]), high), 0, 0); context.restore();
      const hasPlace = (index) => data.rows[index][view.x] !== null && data.rows[index][view.y] !== null;
      const at = (index) => ({ index, x: atX(data.rows[index][view.x]), y: atY(data.rows[index][view.y]) });
      const dot = ({ x, y }, radius) => { context.beginPath(); context.arc(x, y, radius, 0, 7); };
      const visible = new Set(state.shown);
      context.fillStyle = look.faint;
      data.rows.forEach((_, index) => { if (!visible.has(index) && hasPlace(index)) { dot(at(index), 2); context.fill(); } });
      drawn = state.shown.filter(hasPlace).map(at);
      drawn.forEach((one) => {
        context.fillStyle = look.colours[look.bucket(data.rows[one.index][view.colour]) % look.colours.length];
        dot(one, state.front.has(one.index) ? 4.5 : 2.8);
        context.fill();
        if (state.front.has(one.index)) { context.strokeStyle = look.text; context.lineWidth = 1.2; context.stroke(); }
      });
      for (const [index, colour] of [[state.chosen, look.focus], [hover, look.text]]) {
        if (index !== null && hasPlace(index)) { context.strokeStyle = colour; context.lineWidth = 2; dot(at(index), 8); context.stroke(); }
      }
    });
    canvas.setAttribute('aria-label', `${data.columns[view.y].name} over ${data.columns[view.x].name}, ${count(drawn.length)} points. Arrow keys go from point to point, Enter chooses one.`);
  };
  const point = (one) => {
    const was = hover;
    hover = one ? one.index : null;
    if (was !== hover) draw();
    if (!one) { tip.hide(); return; }
    const lines = [view.x, view.y, view.colour].filter((c, n, all) => all.indexOf(c) === n).map((c) => el('tr', {}, el('th', { scope: 'row' }, data.columns[c].name), el('td', { class: 'number' }, valueText(data.columns[c], data.rows[one.index][c]))));
    tip.show([el('strong', {}, `point ${one.index}${state.front.has(one.index) ? ', on the front' : ''}`), el('table', {}, el('tbody', {}, lines))], one.x, one.y);
  };
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const one of drawn) {
      const distance = Math.hypot(one.x - x, one.y - y);
      if (distance < 24 && (!best || distance < best.distance)) best = { ...one, distance };
    }
    return best;
  };
  canvas.addEventListener('pointermove', (event) => point(nearest(event)));
  canvas.addEventListener('pointerleave', () => point(null));
  canvas.addEventListener('blur', () => point(null));
  canvas.addEventListener('click', (event) => { const one = nearest(event); if (one) state.choose(one.index); });
  // To the nearest point in the direction of the arrow.
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (event.key === 'Escape') point(null);
    if (event.key === 'Enter' && hover !== null) state.choose(hover);
    if (!step || drawn.length === 0) return;
    event.preventDefault();
    const here = drawn.find((one) => one.index === (hover ?? state.chosen));
    if (!here) { point(drawn[0]); return; }
    let best = null;
    for (const one of drawn) {
      const [dx, dy] = [one.x - here.x, one.y - here.y];
      const along = dx * step[0] + dy * step[1];
      const across = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      if (one.index === here.index || along <= 0) continue;
      const cost = along + 2 * across;
      if (!best || cost < best.cost) best = { one, cost };
    }
    if (best) point(best.one);
  });
  whenSized(frame, draw);
  return { frame, draw };
};
