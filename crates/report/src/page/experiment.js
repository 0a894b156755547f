// An experiment: what it is, its figure, and its points.

const experimentSection = (data, experiment, index) => {
  const still = [...document.querySelectorAll('.still')].find((node) => node.dataset.experiment === experiment.id);
  const matrix = [...document.querySelectorAll('.matrix')].find((node) => node.dataset.experiment === experiment.id);
  const differences = [...document.querySelectorAll('.differences')].find((node) => node.dataset.experiment === experiment.id);
  const points = pointChooser(data, experiment);
  const panels = experiment.figure.map((panel) => figurePanel(data, experiment, panel, points.choose));
  if (panels.length > 0 && still) still.remove();
  return el('section', { class: 'experiment', id: `e${index}` },
    el('h2', {}, `${experiment.id}: ${experiment.title}`),
    el('p', { class: 'soft small' }, [experiment.source, data.compared && statsLine(experiment.stats)].filter(Boolean).join('. ')),
    experiment.about ? el('p', {}, experiment.about) : null,
    panels,
    matrix || null,
    differences || null,
    points.node,
    configuration(data, experiment));
};

// What was run, for who wants to change it: of an experiment of one's own, that is its head.
const configuration = (data, experiment) => {
  if (data.compared || experiment.points.length === 0) return null;
  const drives = [...new Set(experiment.points.map((point) => point.drive))];
  const name = (drive) => (drives.length === 1 ? 'The drive, every key' : `The drive of ${drivesOf(experiment, drive)}, every key`);
  return el('div', { class: 'configuration' },
    el('h3', {}, 'Configuration'),
    source('The experiment file', experiment.text),
    drives.map((drive) => source(name(drive), data.drives[drive])));
};
const drivesOf = (experiment, drive) => {
  const series = new Set(experiment.points.filter((point) => point.drive === drive).map((point) => experiment.series[point.s]));
  return [...series].join(', ');
};

const statsLine = (stats) => {
  if (stats.count === 0) return '';
  const parts = Object.keys(STATUS).filter((status) => stats.verdicts[status] > 0).map((status) => `${count(stats.verdicts[status])} ${STATUS[status]}`);
  const errors = stats.median === null ? '' : `; |error| median ${percent(stats.median)}, P90 ${percent(stats.p90)}`;
  return `${count(stats.count)} rows: ${parts.join(', ')}${errors}`;
};

// The values of a point as a table: ours, the published one, the error. The
// error is that of the row, which knows about repeats, where there is a row.
const figureTip = (data, panel) => {
  const compared = data.compared && panel.series.some((series) => series.points.some((point) => point.published || point.rows.some((row) => row !== null)));
  return (series, point) => tipOf(data, panel, compared, series, point);
};

const tipOf = (data, panel, compared, series, point) => {
  const line = (axis, at) => {
    const row = data.rows[point.rows[at]];
    const ours = point.ours ? point.ours[at] : null;
    const published = point.published ? point.published[at] : null;
    const error = row ? row.error : ours !== null && published ? ours / published - 1 : null;
    return el('tr', {},
      el('th', { scope: 'row' }, withBrackets(axis)),
      el('td', { class: 'number' }, row ? within(number(ours), row.half) : number(ours)),
      !compared ? null : [
        el('td', { class: 'number' }, number(published)),
        el('td', { class: 'number' }, signed(error)),
        el('td', { class: `status ${row ? row.status : ''}` }, row ? statusWord(row) : '')]);
  };
  const head = (compared ? ['', 'ours', 'published', 'error', ''] : []).map((name) => el('th', { class: 'number' }, name));
  // An axis that is the axis of the experiment stands in the heading already.
  const axes = [panel.x, panel.y].map((axis, at) => [axis, at]).filter(([axis]) => !point.label.startsWith(`${axis.name} `));
  return [
    el('strong', {}, series.name),
    point.label,
    el('table', {}, head.length > 0 ? el('thead', {}, el('tr', {}, head)) : null, el('tbody', {}, axes.map(([axis, at]) => line(axis, at)))),
  ];
};

const figurePanel = (data, experiment, panel, choose) => {
  const spec = {
    label: `${experiment.id}: ${panel.y.name} over ${panel.x.name}`,
    height: 400,
    x: { ...panel.x, kind: panel.x.log ? 'log' : 'linear' },
    y: { ...panel.y, kind: panel.y.log ? 'log' : 'linear' },
    series: panel.series.map((series, look) => ({ ...series, look })),
    tip: figureTip(data, panel),
    pick: (point) => { if (point.p !== undefined) choose(point.p, true); },
  };
  const { frame, note, tools, legend: names } = chart(spec, data.marks);
  return el('figure', { class: 'figure', 'data-experiment': experiment.id }, panel.title ? el('figcaption', {}, panel.title) : null, tools, frame, names, note);
};

// Chooses one point by series and axis value, or from the figure.
const pointChooser = (data, experiment) => {
  if (experiment.points.length === 0) return { node: none('Nothing is run for it: it is computed from given numbers.'), choose: () => {} };
  const [name, unit] = experiment.axis;
  const series = el('select', { 'aria-label': 'Series' });
  const value = el('select', { 'aria-label': name });
  const box = el('div', {});
  let current = 0;
  const used = [...new Set(experiment.points.map((point) => point.s))];
  series.append(...used.map((s) => el('option', { value: s }, experiment.series[s])));
  const show = () => {
    const point = experiment.points[current];
    series.value = String(point.s);
    const same = experiment.points.map((other, index) => [other, index]).filter(([other]) => other.s === point.s);
    value.replaceChildren(...same.map(([other, index]) => el('option', { value: index, selected: index === current }, other.x)));
    box.replaceChildren(pointDetails(data, experiment, point));
  };
  const node = el('details', { class: 'point' },
    el('summary', {}, 'Inside a run: where the time went'),
    el('div', { class: 'tools' }, el('label', {}, 'series ', series), el('label', {}, `${name}${unit ? ` (${unit})` : ''} `, value)),
    box);
  series.addEventListener('change', () => {
    const { x } = experiment.points[current];
    const same = experiment.points.map((point, index) => [point, index]).filter(([point]) => point.s === Number(series.value));
    const [, index] = same.find(([point]) => point.x === x) || same[0];
    current = index;
    show();
  });
  value.addEventListener('change', () => {
    current = Number(value.value);
    show();
  });
  // Nothing is drawn before it is looked at.
  node.addEventListener('toggle', () => { if (node.open && !box.firstChild) show(); });
  const choose = (index, scroll) => {
    current = index;
    show();
    node.open = true;
    // So far that both can be seen, the figure and what is inside.
    const below = node.getBoundingClientRect().top - innerHeight * 0.5;
    if (scroll && below > 0) scrollBy({ top: below, behavior: 'instant' });
  };
  return { node, choose };
};
