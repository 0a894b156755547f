// The table of all values: beside published ones, or ours alone.

const STATUS = { ok: 'ok', misfit: 'MISFIT', missed: 'MISSED', fail: 'FAIL', joint: 'joint', input: 'input', info: 'info' };
const ORDER = { fail: 0, missed: 1, misfit: 2, ok: 3, joint: 4, input: 5, info: 6 };

const COLUMNS = [
  { name: 'result', key: (row) => row.e },
  { name: 'series', key: (row) => row.series },
  { name: 'at', key: (row) => row.x, numeric: true },
  { name: 'metric', key: (row) => row.metric },
  { name: 'unit', key: (row) => row.unit },
  { name: 'published', compared: true, key: (row) => row.published, numeric: true },
  { name: 'ours', key: (row) => row.ours, numeric: true },
  { name: 'error', compared: true, key: (row) => (row.error === null ? null : Math.abs(row.error)), numeric: true },
  { name: 'status', compared: true, key: (row) => ORDER[row.status] },
];

// What explains a row.
const notesOf = (row) => (row.notes || []).map(([name, text]) => el('p', { class: 'small' }, el('strong', {}, `${name}: `), text));

// Where on the axis of its experiment a row lies.
const at = (data, row) => {
  if (row.x === null) return '';
  const [name, unit] = data.experiments[row.e].axis;
  return `${name} ${withUnit(row.at === undefined ? plain(row.x) : row.at, unit)}`;
};

// Values as they read: those of statements say what they are themselves.
const publishedText = (row) => (row.statement ? row.statement[1] : row.published === null ? '–' : number(row.published));
const oursText = (row) => (row.statement ? row.statement[2] : within(number(row.ours), row.half));

const statusWord = (row) => STATUS[row.status] + (row.bracket ? ' ±1pt' : '');

// Rows without a value come last, in both directions; equal ones keep their order.
const sorted = (rows, { key }, down) => {
  const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return down ? compare(y, x) : compare(x, y);
  });
};

const rowsTable = (data) => {
  const columns = COLUMNS.filter(({ compared }) => data.compared || !compared);
  // Of one's own results, what there is to say of a row has a button of its own.
  const isNoted = !data.compared && data.rows.some((row) => row.notes);
  if (isNoted) columns.push({ name: 'more', key: (row) => (row.notes ? 0 : 1) });
  const rows = data.rows.map((row, index) => ({ ...row, index }));
  const state = { column: null, down: false, text: '', status: new Set(Object.keys(STATUS)) };
  const body = el('tbody');
  const shown = el('span', { class: 'soft', role: 'status' });

  const nodes = rows.map((row) => {
    const id = `why-${row.index}`;
    const word = data.compared ? statusWord(row) : 'more';
    const why = row.notes
      ? el('tr', { class: 'why', id, hidden: true }, el('td', { colspan: columns.length },
        notesOf(row)))
      : null;
    const open = why && el('button', { type: 'button', class: 'open', 'aria-expanded': 'false', 'aria-controls': id }, word);
    if (open) {
      open.addEventListener('click', () => {
        why.hidden = !why.hidden;
        open.setAttribute('aria-expanded', String(!why.hidden));
      });
    }
    const cell = (text, numeric) => el('td', numeric ? { class: 'number' } : {}, text);
    const line = el('tr', { 'data-row': row.index, 'data-status': row.status },
      cell(data.experiments[row.e].id),
      cell(row.series),
      cell(at(data, row), true),
      cell(row.statement ? `${row.metric} (${row.statement[0]})` : row.metric),
      el('td', { class: 'soft' }, unitName(row.unit)),
      data.compared ? cell(publishedText(row), true) : null,
      cell(oursText(row), true),
      data.compared ? [cell(signed(row.error), true), el('td', { class: `status ${row.status}` }, open || word)] : null,
      isNoted ? el('td', {}, open) : null);
    const text = [data.experiments[row.e].id, row.series, row.metric, row.unit, at(data, row), data.compared ? word : ''];
    return { row, line, why, text: text.join(' ').toLowerCase() };
  });

  const matches = (node) => state.status.has(node.row.status)
    && state.text.split(/\s+/).every((word) => node.text.includes(word));
  const refresh = () => {
    const order = state.column === null ? rows : sorted(rows, columns[state.column], state.down);
    const visible = order.map((row) => nodes[row.index]).filter(matches);
    body.replaceChildren(...visible.flatMap(({ line, why }) => (why ? [line, why] : [line])));
    shown.textContent = `${count(visible.length)} of ${count(rows.length)} rows`;
  };

  const heads = columns.map(({ name, numeric }, column) => {
    const head = el('th', { scope: 'col', class: numeric ? 'number' : null }, el('button', { type: 'button' }, name));
    head.addEventListener('click', () => {
      // A third time gives back the order of the experiments.
      if (state.column !== column) Object.assign(state, { column, down: false });
      else if (!state.down) state.down = true;
      else state.column = null;
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      if (state.column !== null) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      refresh();
    });
    return head;
  });
  const search = el('input', { type: 'search', placeholder: data.compared ? 'C10b kiops 64' : 'kiops 64', 'aria-label': 'Rows that contain these words' });
  search.addEventListener('input', () => {
    state.text = search.value.trim().toLowerCase();
    refresh();
  });
  const boxes = !data.compared ? [] : Object.keys(STATUS).map((status) => {
    const many = rows.filter((row) => row.status === status).length;
    const input = el('input', { type: 'checkbox', checked: true, value: status, disabled: many === 0 });
    input.addEventListener('change', () => {
      if (input.checked) state.status.add(status);
      else state.status.delete(status);
      refresh();
    });
    return el('label', {}, input, `${STATUS[status]} (${count(many)})`);
  });
  refresh();
  return el('section', {},
    el('h2', {}, data.compared ? 'Published against ours, row by row' : 'Results, row by row'),
    data.compared ? el('p', { class: 'soft small' }, 'The error is relative to the published value, and sorts by its magnitude. A status that is underlined has an explanation: choose it.') : null,
    el('div', { class: 'tools' }, search, boxes, shown),
    el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Rows' },
      el('table', {}, el('thead', {}, el('tr', {}, heads)), body)));
};
