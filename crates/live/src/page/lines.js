// What happened over the last two minutes.

// Colours of the causes: those of the bars.
const CAUSE_LOOKS = [4, 0, 5, 3, 1, 6, 2, 7, 12, 11];
// Lines have no marks.
const NO_MARKS = [['M0 0', 'M0 0']];

// Rates between neighbouring samples: `values(sample)` are totals, one for each name.
const rates = (samples, values, scale) => {
  const now = samples[samples.length - 1].uptime_ns;
  return samples.slice(1).map((sample, index) => {
    const before = samples[index];
    const ns = sample.uptime_ns - before.uptime_ns;
    const [after, earlier] = [values(sample), values(before)];
    return {
      key: sample.uptime_ns,
      at: (sample.uptime_ns - now) / 1e9,
      rates: after.map((value, of) => Math.max(0, (value - earlier[of]) * scale) / ns),
    };
  });
};

const lineChart = (label, names, looks, y, digits) => {
  // A legend shows how a series looks once it has a point.
  const series = names.map((name, index) => ({ name, look: looks[index], line: true, points: [{ ours: [0, 0] }] }));
  const spec = {
    label, height: 220, series,
    x: { name: 'time', unit: 's', kind: 'linear', fixed: true },
    y: { ...y, kind: 'linear', zero: true, fixed: true },
    tip: (one, point) => [el('strong', {}, one.name), `${digits(point.ours[1])}, ${number(-point.ours[0])} s ago`],
  };
  const { frame, redraw, legend: key } = chart(spec, NO_MARKS);
  return {
    nodes: [frame, key],
    update: (all) => {
      series.forEach((one, index) => {
        one.points = all.map((point) => ({ key: point.key, ours: [point.at, point.rates[index]] }));
      });
      redraw();
    },
  };
};

const throughputSection = (past) => {
  const drawing = lineChart('Throughput over time', ['read', 'written'], [0, 1],
    { name: 'throughput', unit: 'MiB/s' }, (value) => `${number(value)} MiB/s`);
  const commands = lineChart('Commands over time', ['commands', 'failed'], [2, 3],
    { name: 'commands', unit: '1/s' }, (value) => `${number(value)} per second`);
  const counts = (sample) => {
    const all = Object.values(sample.operations);
    return [sum(all.map((row) => row.commands)), sum(all.map((row) => row.errors))];
  };
  return {
    node: el('section', {}, el('h2', {}, 'Throughput'), el('div', { class: 'parts' },
      el('div', { id: 'throughput' }, drawing.nodes), el('div', { id: 'commands' }, commands.nodes))),
    update: () => {
      const bytesOf = ({ totals }) => [totals.host_read_bytes, totals.host_written_bytes];
      drawing.update(rates(past.all(), bytesOf, 1e9 / 2 ** 20));
      commands.update(rates(past.all(), counts, 1e9));
    },
  };
};

// Busy time of dies by cause: over time, of one or of all; and of each, lately.
const MOST_ROWS = 64;
const BAR_SECONDS = 10;
const loadSection = (past, first) => {
  const { causes } = first;
  const dies = first.dies.busy_ns.length;
  const which = el('select', { id: 'die' }, el('option', { value: '' }, 'all dies'),
    first.dies.busy_ns.map((_, die) => el('option', { value: die }, `die ${die}`)));
  const drawing = lineChart('Load of dies by cause over time', causes, CAUSE_LOOKS,
    { name: 'busy', unit: '%' }, (value) => `${number(value)} %`);
  const bars = el('div', { id: 'dies' });
  const group = Math.ceil(dies / MOST_ROWS);
  const key = el('div', { class: 'legend' }, causes.map((cause, index) => swatch(`c${index}`, cause)), swatch('idle', 'idle'));
  const perCause = (rows) => causes.map((_, cause) => sum(rows.map((row) => row[cause])));
  const load = ({ dies: { busy_ns: busy } }) =>
    (which.value === '' ? perCause(busy).map((ns) => ns / dies) : busy[Number(which.value)]);
  const drawBars = () => {
    const { now, then, ns } = past.span(BAR_SECONDS);
    if (ns === 0 || bars.matches(':hover')) return;
    const since = now.dies.busy_ns.map((row, die) => row.map((value, cause) => Math.max(0, value - then.dies.busy_ns[die][cause])));
    const rows = [];
    for (let die = 0; die < dies; die += group) rows.push(perCause(since.slice(die, die + group)));
    bars.replaceChildren(busyBars('Load of each die', 'die', { count: dies, per_group: group, busy_ns: rows }, ns, causes));
  };
  const update = () => {
    drawing.update(rates(past.all(), load, 100));
    drawBars();
  };
  which.addEventListener('change', update);
  return {
    node: el('section', {}, el('h2', {}, 'Load of dies'), el('div', { class: 'parts' },
      el('div', { id: 'load' }, el('div', { class: 'tools' }, el('label', {}, 'Over time, of', which)), drawing.nodes),
      el('div', {}, el('h3', {}, `Each, in the last ${BAR_SECONDS} s`), bars, key)),
      el('p', { class: 'soft small' }, 'Work is booked when its time is certain, which may be before it has passed: a share can exceed 100 % for a moment.')),
    update,
  };
};
