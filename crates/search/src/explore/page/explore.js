// The page of a sweep or a search: views, filters, the table, and the point that is chosen.

const ROWS_SHOWN = 200;

const choice = (name, options, value, change) => {
  const select = el('select', { 'data-name': name, 'aria-label': name },
    options.map(([id, text]) => el('option', { value: id, selected: id === value }, text)));
  select.addEventListener('change', () => change(Number(select.value)));
  return el('label', {}, name, select);
};

// Fields that filter: the same as dragging along an axis, for who does not use a pointer.
const filterFields = (data, state, view) => {
  const box = el('div', { class: 'filters' });
  const fields = new Map();
  const numberField = (c, end) => {
    const input = el('input', { type: 'text', inputmode: 'decimal', 'aria-label': `${end === 'low' ? 'at least' : 'at most'}, ${captionOf(data.columns[c])}`, 'data-filter': `${c}-${end}` });
    input.addEventListener('change', () => {
      const value = input.value.trim() === '' ? null : Number(input.value);
      const filter = state.filters.get(c) || { low: -Infinity, high: Infinity };
      const wanted = value === null || Number.isNaN(value) ? (end === 'low' ? -Infinity : Infinity) : value;
      const next = { ...filter, [end]: wanted };
      state.filter(c, next.low === -Infinity && next.high === Infinity ? null : next);
    });
    return input;
  };
  const wordBox = (c, word, n) => {
    const input = el('input', { type: 'checkbox', checked: true, 'data-filter': `${c}-${n}` });
    input.addEventListener('change', () => {
      const all = data.columns[c].words.map((_, index) => index);
      const words = new Set(state.filters.get(c)?.words ?? all);
      if (input.checked) words.add(n);
      else words.delete(n);
      state.filter(c, words.size === all.length ? null : { words });
    });
    return [input, el('label', {}, input, ` ${word}`)];
  };
  const build = () => {
    fields.clear();
    box.replaceChildren(...view.axes.map((c) => {
      const column = data.columns[c];
      if (column.words) {
        const boxes = column.words.map((word, n) => wordBox(c, word, n));
        fields.set(c, boxes.map(([input]) => input));
        return el('fieldset', {}, el('legend', {}, headOf(column)), el('div', { class: 'range' }, boxes.map(([, label]) => label)));
      }
      const ends = ['low', 'high'].map((end) => numberField(c, end));
      fields.set(c, ends);
      const extent = extentOf(data.rows, c);
      const from = extent ? `${valueText(column, extent[0])} to ${valueText(column, extent[1])}` : 'no values';
      return el('fieldset', {}, el('legend', {}, headOf(column), ' ', el('span', { class: 'soft' }, from)),
        el('div', { class: 'range' }, ends[0], ' to ', ends[1], column.unit && column.unit !== '1' ? unitName(column.unit) : null));
    }));
    show();
  };
  const show = () => {
    for (const [c, inputs] of fields) {
      const filter = state.filters.get(c);
      if (data.columns[c].words) inputs.forEach((input, n) => { input.checked = !filter || filter.words.has(n); });
      else ['low', 'high'].forEach((end, n) => { inputs[n].value = filter && Number.isFinite(filter[end]) ? plain(filter[end]) : ''; });
    }
  };
  state.onChange(show);
  return { box, build };
};

// Which way is better, for each column of numbers that is no input.
const objectiveFields = (data, state) => {
  const columns = data.columns.map((column, c) => [column, c]).filter(([column]) => column.role !== 'input' && !column.words);
  const line = ([column, c]) => {
    const select = el('select', { 'data-goal': c, 'aria-label': `Objective: ${column.name}` },
      [['', 'no objective'], ['min', 'less is better'], ['max', 'more is better']].map(([id, text]) => el('option', { value: id, selected: (state.goals.get(c) || '') === id }, text)));
    select.addEventListener('change', () => {
      if (select.value) state.goals.set(c, select.value);
      else state.goals.delete(c);
      state.update('goals');
    });
    return el('label', {}, select, ` ${captionOf(column)}`);
  };
  return el('details', { id: 'objectives' }, el('summary', {}, 'Objectives'), el('div', { class: 'controls' }, columns.map(line)));
};

const axisFields = (data, view, changed) => {
  const line = (column, c) => {
    const input = el('input', { type: 'checkbox', checked: view.axes.includes(c), 'data-axis': c });
    input.addEventListener('change', () => {
      view.axes = data.columns.map((_, n) => n).filter((n) => (n === c ? input.checked : view.axes.includes(n)));
      changed();
    });
    return el('label', {}, input, captionOf(column));
  };
  return el('details', {}, el('summary', {}, 'Columns of the parallel coordinates'), el('div', { class: 'controls' }, data.columns.map(line)));
};

// The points that pass, the front first.
const runsTable = (data, state, view) => {
  const body = el('tbody');
  const head = el('thead');
  const note = el('p', { class: 'soft small' });
  const sort = { c: null, down: false };
  const drawHead = () => {
    const heads = view.columns.map((c) => {
      const column = data.columns[c];
      const cell = el('th', { scope: 'col', class: column.words ? null : 'number', 'aria-sort': sort.c === c ? (sort.down ? 'descending' : 'ascending') : null },
        el('button', { type: 'button', 'data-sort': c }, headOf(column)));
      cell.addEventListener('click', () => {
        if (sort.c === c && sort.down) sort.c = null;
        else Object.assign(sort, { c, down: sort.c === c });
        draw();
      });
      return cell;
    });
    head.replaceChildren(el('tr', {}, el('th', { scope: 'col' }, 'point'), state.goals.size > 0 ? el('th', { scope: 'col' }, 'front') : null, heads));
  };
  const draw = () => {
    drawHead();
    const first = [...state.goals.keys()][0];
    const { c, down } = sort.c === null ? { c: first, down: state.goals.get(first) === 'max' } : sort;
    const order = [...state.shown].sort((a, b) => {
      if (sort.c === null && state.front.has(a) !== state.front.has(b)) return state.front.has(b) - state.front.has(a);
      if (c === undefined) return a - b;
      const [x, y] = [data.rows[a][c], data.rows[b][c]];
      if (x === null || y === null) return (x === null) - (y === null);
      return (down ? y - x : x - y) || a - b;
    });
    body.replaceChildren(...order.slice(0, ROWS_SHOWN).map((index) => {
      const button = el('button', { type: 'button', 'data-point': index, 'aria-label': `Point ${index}: show its run` }, String(index));
      button.addEventListener('click', () => state.choose(index));
      return el('tr', { 'data-row': index, 'aria-current': state.chosen === index ? 'true' : null }, el('td', {}, button), state.goals.size > 0 ? el('td', {}, state.front.has(index) ? '✱' : '') : null,
        view.columns.map((at) => el('td', { class: data.columns[at].words ? null : 'number' }, valueText(data.columns[at], data.rows[index][at]))));
    }));
    note.textContent = order.length > ROWS_SHOWN ? `The first ${ROWS_SHOWN} of ${count(order.length)}.` : '';
  };
  state.onChange((what) => {
    if (what !== 'choice') { draw(); return; }
    body.querySelectorAll('tr').forEach((row) => {
      if (Number(row.dataset.row) === state.chosen) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    });
  });
  const table = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Points' }, el('table', {}, head, body));
  return { node: [table, note], draw };
};

// All of the point that is chosen.
const runBox = (data, state) => {
  const box = el('div', { 'aria-live': 'polite' });
  const facts = (role) => {
    const mine = data.columns.map((column, c) => [column, c]).filter(([column]) => role.includes(column.role));
    return el('dl', { class: 'facts' }, mine.map(([column, c]) => [
      el('dt', { class: column.role === 'objective' ? 'objective' : null }, headOf(column)),
      el('dd', { 'data-column': column.name }, valueText(column, data.rows[state.chosen][c]))]));
  };
  const show = () => {
    if (state.chosen === null) {
      box.replaceChildren(el('p', { class: 'soft' }, 'Choose a point: in a plot, or by its number in the table.'));
      return;
    }
    const note = data.notes[state.chosen];
    const [before, after] = data.command_parts;
    box.replaceChildren(
      el('h3', {}, `Point ${state.chosen}${state.front.has(state.chosen) ? ', on the front' : ''}`),
      ...(note ? [el('p', { class: 'notice' }, note)] : []),
      el('div', { class: 'parts' },
        el('div', {}, el('h3', {}, 'Inputs'), facts(['input'])),
        el('div', {}, el('h3', {}, 'Results'), facts(['objective', 'metric']))),
      el('h3', {}, 'Run it again'),
      command([before, data.commands[state.chosen], after].filter(Boolean).join(' ')),
      el('p', { class: 'soft small' }, data.command_note));
  };
  state.onChange(show);
  show();
  return box;
};

// What the colours mean.
const colourKey = (data, state, view) => {
  const box = el('div', { class: 'keys' });
  const draw = () => {
    const look = coloursOf(data, view.colour);
    const column = data.columns[view.colour];
    const swatchOf = (name) => { const one = el('span', { class: 'swatch' }); one.style.background = `var(${name})`; return one; };
    if (column.words) {
      box.replaceChildren(...column.words.map((word, n) => el('span', { class: 'key' }, swatchOf(look.names[n]), ' ', word)));
      return;
    }
    const extent = extentOf(data.rows, view.colour);
    const ramp = el('span', { class: 'ramp' }, look.names.map((name) => { const one = el('span'); one.style.background = `var(${name})`; return one; }));
    box.replaceChildren(captionOf(column), ': ', extent ? valueText(column, extent[0]) : '', ramp, extent ? valueText(column, extent[1]) : '', state.goals.size > 0 ? el('span', {}, 'larger with an outline: the front') : '');
  };
  return { box, draw };
};

const start = () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const state = explorer(data);
  const byRole = (role) => data.columns.map((column, c) => [column, c]).filter(([column]) => column.role === role).map(([, c]) => c);
  const [inputs, aims, metrics] = ['input', 'objective', 'metric'].map(byRole);
  const results = [...aims, ...metrics];
  // What has one value everywhere, or none, shows nothing as an axis.
  const varies = (c) => { const extent = extentOf(data.rows, c); return extent !== null && extent[0] < extent[1]; };
  const varying = results.filter(varies);
  const axes = [...inputs, ...(aims.length > 0 ? aims : metrics.filter(varies).slice(0, 4))].slice(0, 12);
  const view = { axes, columns: [...inputs, ...results], x: varying[0] ?? results[0] ?? 0, y: varying[1] ?? varying[0] ?? results[0] ?? 0, colour: inputs[0] ?? 0 };
  const names = data.columns.map((column, c) => [c, captionOf(column)]);

  const status = el('p', { role: 'status', id: 'status' });
  const lines = parallel(data, state, view);
  const points = scatter(data, state, view);
  const fields = filterFields(data, state, view);
  const table = runsTable(data, state, view);
  const key = colourKey(data, state, view);
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      lines.draw();
      points.draw();
    });
  };
  state.onChange(() => {
    status.textContent = `${count(state.shown.length)} of ${count(data.rows.length)} points${state.goals.size > 0 ? `, ${count(state.front.size)} on the front` : ''}`;
    onlyFront.hidden = state.goals.size === 0;
    key.draw();
    redraw();
  });
  const looks = () => { key.draw(); redraw(); };
  const only = el('input', { type: 'checkbox', id: 'only-front' });
  const onlyFront = el('label', {}, only, 'only the front');
  only.addEventListener('change', () => { state.onlyFront = only.checked; state.update('front'); });
  const clear = el('button', { type: 'button', class: 'plain', id: 'clear' }, 'No filters');
  clear.addEventListener('click', () => { state.filters.clear(); state.update('filter'); });
  const pick = (what) => (c) => { view[what] = c; looks(); };

  const section = (id, title, ...content) => el('section', { id }, el('h2', {}, title), content);
  document.getElementById('explorer').append(
    ...(data.command ? [command(data.command)] : []),
    ...data.notices.map((text) => el('p', { class: 'notice' }, text)),
    el('div', { class: 'controls' }, status, onlyFront, clear,
      choice('colour', names, view.colour, pick('colour'))),
    key.box,
    objectiveFields(data, state),
    section('coordinates', 'Parallel coordinates',
      el('p', { class: 'soft small' }, 'Each line is a point. Drag along an axis to keep what passes there; a click on the axis takes that back.'),
      lines.frame,
      axisFields(data, view, () => { fields.build(); redraw(); }),
      el('details', { id: 'filters' }, el('summary', {}, 'Filters as fields'), fields.box)),
    section('plot', 'Scatter plot',
      el('div', { class: 'controls' }, choice('x', names, view.x, pick('x')), choice('y', names, view.y, pick('y'))),
      points.frame),
    section('run', 'The run of a point', runBox(data, state)),
    section('runs', 'Points', table.node));
  document.getElementById('page').append(el('footer', {}, `Made by ${data.tool}, seed ${data.seed}. ${data.files_note}`));
  fields.build();
  key.draw();
  state.update('start');
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', looks);
};

start();
