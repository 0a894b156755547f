// The page.

// Verdicts by experiment. Errors of different kinds of results are never mixed. Of experiments
// of one's own, their names.
const summary = (data) => {
  if (!data.compared) {
    const names = data.experiments.map((one, index) => el('li', {}, el('a', { href: `#e${index}` }, `${one.id}: ${one.title}`)));
    return names.length > 1 ? el('ul', {}, names) : null;
  }
  const verdicts = Object.keys(STATUS);
  const head = ['result', 'rows', ...verdicts.map((status) => STATUS[status]), 'median |error|', 'P90 |error|'];
  const line = (name, stats) => el('tr', {}, el('th', { scope: 'row' }, name),
    el('td', { class: 'number' }, count(stats.count)),
    verdicts.map((status) => el('td', { class: `number${status === 'fail' && stats.verdicts.fail > 0 ? ' status fail' : ''}` }, count(stats.verdicts[status]))),
    [stats.median, stats.p90].map((error) => el('td', { class: 'number' }, error === null ? '–' : percent(error))));
  return el('section', { id: 'summary' }, el('h2', {}, 'Summary'), el('div', { class: 'scroll' }, el('table', { class: 'summary' },
    el('thead', {}, el('tr', {}, head.map((name, column) => el('th', { scope: 'col', class: column ? 'number' : null }, name)))),
    el('tbody', {},
      data.experiments.map((experiment, index) => line(el('a', { href: `#e${index}` }, experiment.id, el('span', { class: 'title' }, `: ${experiment.title}`)), experiment.stats))))));
};

// Statements and bars that do not hold, the worst first.
const gaps = (data) => {
  if (data.missing.length === 0) return null;
  const head = ['result', 'what does not hold', 'published', 'ours', 'it takes', 'why', ''];
  const numeric = (column) => (column === 2 || column === 3 ? 'number' : null);
  const classes = (text, column) => (text === '-' ? `${numeric(column) ?? ''} none` : numeric(column));
  // Roles, since a narrow screen has each of these as a block of its own, and not as a table.
  const line = ([id, says, published, ours, needs, cause, known]) => el('tr', { role: 'row' },
    [id, says, published, ours, needs, cause].map((text, column) => el('td', { class: classes(text, column), role: 'cell', 'data-name': head[column] }, text)),
    el('td', { class: `status ${known ? 'missed' : 'fail'}`, role: 'cell' }, known ? STATUS.missed : STATUS.fail));
  return el('section', { id: 'gaps' },
    el('h2', {}, 'Known gaps'),
    el('div', { class: 'scroll' }, el('table', { class: 'gaps', role: 'table' },
      el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, head.map((name, column) => el('th', { scope: 'col', role: 'columnheader', class: numeric(column) }, name)))),
      el('tbody', { role: 'rowgroup' }, data.missing.map(line)))));
};

// What is said of jobs: of a few in full, of many on demand.
const warnings = ({ warnings: all }) => (all.length <= 10
  ? all.map((text) => el('p', { class: 'notice' }, text))
  : [el('details', { class: 'notice' }, el('summary', {}, `${all.length} warnings`), el('ul', {}, all.map((text) => el('li', {}, text))))]);

const start = () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  document.getElementById('head').append(
    command(data.command),
    ...data.notices.map((text) => el('p', { class: 'notice' }, text)),
    ...warnings(data),
    ...[
      data.summary.length > 0 && el('ul', { id: 'lines' }, data.summary.map((text) => el('li', {}, text))),
      summary(data),
      gaps(data),
    ].filter(Boolean));
  document.getElementById('experiments').append(...data.experiments.map((experiment, index) => experimentSection(data, experiment, index)));
  if (data.rows.length > 0) document.getElementById('rows').append(rowsTable(data));
  document.getElementById('page').append(el('footer', {},
    `Made by ${data.tool}, seed ${data.seed}. The same command gives the same bytes. The numbers are also in points.json, points.csv, rows.json and rows.csv, beside this page.`));
};

start();
