// The page.

const summary = (data) => {
  const head = ['result', 'rows', 'ok', 'misfit', 'FAIL', 'joint', 'info', 'median |error|', 'P90 |error|'];
  const line = (name, stats) => el('tr', {}, el('th', { scope: 'row' }, name),
    [stats.count, stats.ok, stats.misfit, stats.fail, stats.joint, stats.info].map((many, column) =>
      el('td', { class: `number${column === 3 && many > 0 ? ' status fail' : ''}` }, count(many))),
    [stats.median, stats.p90].map((error) => el('td', { class: 'number' }, error === null ? '–' : percent(error))));
  return el('div', { class: 'scroll' }, el('table', { class: 'summary' },
    el('thead', {}, el('tr', {}, head.map((name, column) => el('th', { scope: 'col', class: column ? 'number' : null }, name)))),
    el('tbody', {},
      data.experiments.map((experiment, index) => line(el('a', { href: `#e${index}` }, experiment.id, el('span', { class: 'title' }, `: ${experiment.title}`)), experiment.stats)),
      data.experiments.length > 1 ? line('all', data.overall) : null)));
};

const drives = (bar) => {
  if (!bar) return null;
  const [median, p90, pass] = bar;
  return el('p', {}, `Rows of real drives together: median error ${percent(median)} (at most 5 %), P90 ${percent(p90)} (at most 15 %): `,
    el('span', { class: `status ${pass ? 'ok' : 'fail'}` }, pass ? 'ok' : 'FAIL'));
};

const start = () => {
  const data = JSON.parse(document.getElementById('data').textContent);
  document.getElementById('head').append(
    command(data.command),
    ...data.notices.map((text) => el('p', { class: 'notice' }, text)),
    summary(data),
    ...[drives(data.drive_bar)].filter(Boolean));
  document.getElementById('experiments').append(...data.experiments.map((experiment, index) => experimentSection(data, experiment, index)));
  if (data.rows.length > 0) document.getElementById('rows').append(rowsTable(data));
  document.getElementById('page').append(el('footer', {},
    `Made by ${data.tool}, seed ${data.seed}. The same command gives the same bytes. The numbers are also in points.json, points.csv, rows.json and rows.csv, beside this page.`));
};

start();
