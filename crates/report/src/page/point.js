// One point of an experiment: what happened inside the drive.

const part = (title, wide, ...content) => el('div', { class: wide ? 'wide' : null }, el('h3', {}, title), content);

const pointDetails = (data, experiment, point) => {
  const is_real = point.simulated_ns === undefined;
  const took = is_real ? point.elapsed_ns : point.simulated_ns;
  const seconds = took / 1e9;
  const drive = point.totals !== undefined;
  // Parts about a drive that tells what it did: an emulated one.
  const ofDrive = (...parts) => (drive ? parts.map((make) => make()) : []);
  return el('div', { class: 'inside' },
    el('p', { class: 'small soft' },
      `${duration(took)} of ${is_real ? 'real' : 'simulated'} time, ${count(point.operations)} operations, seed ${data.seed}.${drive ? '' : ' What the drive did inside is not known.'}`),
    el('div', { class: 'parts' },
      ...compared(data, experiment, point),
      ...ofDrive(() => part('Where the time of the flash went', true, ...timeByCause(data, point, took))),
      part('Latency by percentile', false, ...latencies(data, point)),
      ...(point.slowest ? [part('Slowest requests', true, ...slowest(point))] : []),
      part('Throughput over time', false, ...throughput(data, point, seconds)),
      ...ofDrive(() => part('Writes and erasures', false, writes(point)), () => part('Wear: erasures by block', false, ...wear(point))),
      ...(point.wear_map ? [part('Wear map', true, wearMap(point.wear_map))] : []),
      ...ofDrive(() => part('Zone states over time', true, ...(point.zones ? [zoneMap(point.zones)] : [none('No zone changed its state, or changes were not recorded.')]))),
      part('Measurements', true, metrics(point)),
      part('Run it again', true, command(point.command),
        el('p', { class: 'soft small' }, `Runs this axis value of every series, with the same seed and the same results${point.slowest || !drive || is_real ? '' : ', and says what the slowest requests waited for'}. The whole experiment: `),
        command(experiment.command),
        source('The drive, resolved', data.drives[point.drive]),
        source(`The experiment file, as it is before --quick and --set`, experiment.text))));
};

// The rows of the point.
const compared = (data, experiment, point) => {
  const series = experiment.series[point.s];
  const own = (row) => data.experiments[row.e] === experiment && row.x !== null && plain(row.x) === plain(point.n)
    && (row.series === series || row.series.startsWith(`${series}: `)) && row.published !== null;
  const rows = data.rows.filter(own);
  if (rows.length === 0) return [];
  const cell = (text) => el('td', { class: 'number' }, text);
  const head = ['', 'published', 'ours', 'error', ''].map((name, column) => el('th', { scope: 'col', class: column ? 'number' : null }, name));
  const name = (row) => row.metric + (row.series === series ? '' : ` of ${row.series.slice(series.length + 2)}`);
  return [part('Against what was published', true, el('div', { class: 'scroll' }, el('table', { class: 'compared' },
    el('thead', {}, el('tr', {}, head)),
    el('tbody', {}, rows.map((row) => el('tr', {}, el('th', { scope: 'row' }, name(row)),
      cell(withUnit(publishedText(row), row.unit)), cell(withUnit(oursText(row), row.unit)), cell(signed(row.error)),
      el('td', { class: `status ${row.status}` }, statusWord(row))))))),
  ...rows.flatMap((row) => (row.status === 'misfit' ? notesOf(row) : [])))];
};

const none = (text) => el('p', { class: 'soft small' }, text);

const timeByCause = (data, point, took) => {
  const sums = (busy) => data.causes.map((_, cause) => busy.busy_ns.reduce((sum, row) => sum + row[cause], 0));
  const [channels, units] = [sums(point.channels), sums(point.units)];
  const of = (ns, busy) => percent(ns / (took * busy.count), 2);
  const rest = (all, busy) => Math.max(0, took * busy.count - all.reduce((sum, ns) => sum + ns, 0));
  const line = (look, name, inChannels, inUnits) => el('tr', {},
    el('th', { scope: 'row' }, swatch(look, ` ${name}`)),
    el('td', { class: 'number' }, of(inChannels, point.channels)),
    el('td', { class: 'number' }, of(inUnits, point.units)));
  const head = (text, numeric) => el('th', { scope: 'col', class: numeric ? 'number' : null }, text);
  const table = el('div', { class: 'scroll' }, el('table', { class: 'causes' },
    el('thead', {}, el('tr', {}, head('cause'), head(`${count(point.channels.count)} channels`, true), head(`${count(point.units.count)} units`, true))),
    el('tbody', {},
      data.causes.map((name, cause) => (channels[cause] || units[cause] ? line(`c${cause}`, name, channels[cause], units[cause]) : null)),
      line('idle', 'idle', rest(channels, point.channels), rest(units, point.units)))));
  const late = [point.channels, point.units].some((busy) => busy.busy_ns.some((row, index) => {
    const used = row.reduce((sum, ns) => sum + ns, 0);
    return used > took * membersOf(busy, index);
  }));
  return [
    busyBars('Channels', 'channel', point.channels, took, data.causes),
    busyBars('Units', 'unit', point.units, took, data.causes, [nameOf('channel', point.channels, 0).length]),
    table,
    none(`A unit is a plane, or a die if its planes do not work independently.${late ? ' Work that was begun goes on beyond the end of the run.' : ''}`),
  ];
};

const lines = (spec) => {
  const { frame, note, tools, legend: names } = chart(spec, [['M0 0', 'M0 0']]);
  return [tools, frame, names, note];
};

// A distribution is drawn as far as there are operations: beyond the quantile
// that ten of them exceed, dashed.
const latencies = (data, point) => {
  const series = point.jobs.filter((job) => job.latencies_ns.length > 0).map((job) => ({
    name: `${job.name} (${count(job.operations)} ops)`,
    look: point.jobs.indexOf(job),
    line: true,
    points: job.latencies_ns.map((ns, index) => ({
      ours: [data.quantiles[index], ns / 1e3],
      thin: job.operations * (1 - data.quantiles[index] / 100) < 9.999,
    })),
  }));
  if (series.length === 0) return [none('Nothing was measured.')];
  const tip = (line, at) => [el('strong', {}, line.name), `P${plain(at.ours[0])}: ${number(at.ours[1])} us`];
  return [
    ...lines({
      label: 'Latency by percentile', height: 260, series, tip,
      x: { name: 'operations that are at most as slow', unit: '', kind: 'tail', fixed: true },
      y: { name: 'latency', unit: 'us', kind: 'log' },
    }),
    none('Dashed: fewer than ten operations lie beyond. A curve ends where none does, at the latest at P99.99.'),
  ];
};

// The parts of a latency add up to it: what it waited for is exact.
const slowest = (point) => {
  const head = ['request', 'job', 'at', 'latency', 'where the time went'];
  const is_number = (column) => column === 2 || column === 3;
  const line = ([command, job, submitted, latency, why]) => el('tr', {},
    [command, job, duration(submitted), duration(latency), why].map((text, column) => el('td', { class: is_number(column) ? 'number' : null }, text)));
  return [
    el('div', { class: 'scroll' }, el('table', { class: 'slowest' },
      el('thead', {}, el('tr', {}, head.map((name, column) => el('th', { scope: 'col', class: is_number(column) ? 'number' : null }, name)))),
      el('tbody', {}, point.slowest.map(line)))),
    none('The slowest reads, writes and appends of the whole run, also of times that are not measured. "Own flash" is the time of the request\'s own flash operations; the rest is what it waited for.'),
  ];
};

const throughput = (data, point, seconds) => {
  const series = point.jobs.filter((job) => job.throughput).map((job) => {
    const { from_ns: from, step_ns: step, to_ns: to, operations } = job.throughput;
    const points = operations.map((ops, index) => {
      const begin = from + index * step;
      const end = Math.min(begin + step, to);
      return { begin, end, ops, rate: ops / ((end - begin) / 1e9) / 1e3 };
    });
    // What is left of the last slot says little if it is short.
    const whole = points.filter(({ begin, end }, index) => index === 0 || end - begin >= step / 2);
    return {
      name: job.name,
      look: point.jobs.indexOf(job),
      line: true,
      points: whole.map((slot) => ({ ...slot, ours: [(slot.begin + slot.end) / 2e9, slot.rate] })),
    };
  });
  if (series.length === 0) return [none('Nothing was measured.')];
  const tip = (line, at) => [
    el('strong', {}, line.name),
    `${duration(at.begin)} to ${duration(at.end)}: ${number(at.rate)} KIOPS (${count(at.ops)} operations)`,
  ];
  return [
    ...lines({
      label: 'Throughput over time', height: 260, series, tip,
      x: { name: 'time', unit: 's', kind: 'linear', fixed: true },
      y: { name: 'throughput', unit: 'KIOPS', kind: 'linear', zero: true },
    }),
    none(`Intervals of half a second, several together in long runs; the run takes ${number(seconds)} s.`),
  ];
};

const writes = (point) => {
  const t = point.totals;
  const facts = [
    ['read by the host', bytes(t.host_read_bytes)],
    ['written by the host', bytes(t.host_write_bytes)],
    ['programmed for the host', bytes(t.host_program_bytes)],
    ['programmed by finishes', bytes(t.fill_program_bytes)],
    ['write amplification (DLWA)', t.dlwa === null ? '–' : number(t.dlwa)],
    ['blocks erased', count(t.erased_blocks)],
    ['zones reset', count(t.resets)],
    ['zones finished', count(t.finishes)],
    ['zones closed by the drive', count(t.implicit_closes)],
  ];
  return el('dl', { class: 'facts' }, facts.map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
};

const wear = (point) => {
  const worn = point.wear.filter(([, greatest]) => greatest > 0);
  if (worn.length === 0) return [none('No block was erased.')];
  return [wearBars(point.wear), ...(point.wear_map ? [wearFacts(point.wear_map)] : [])];
};

const metrics = (point) => {
  const measured = point.jobs.filter((job) => job.metrics.length > 0);
  if (measured.length === 0) return none('Nothing was measured.');
  const names = [];
  for (const job of measured) {
    for (const [name, unit] of job.metrics) if (!names.some(([known]) => known === name)) names.push([name, unit]);
  }
  const value = (job, name) => {
    const found = job.metrics.find(([known]) => known === name);
    if (name === 'ops' && found) return count(job.operations);
    const varies = (job.spread || []).find(([known]) => known === name);
    const half = varies && varies[2] !== null ? (varies[2] - varies[1]) / 2 : undefined;
    return found ? within(number(found[2]), half) : '–';
  };
  return el('div', { class: 'scroll' }, el('table', {},
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'metric'), measured.map((job) => el('th', { scope: 'col', class: 'number' }, job.name)))),
    el('tbody', {}, names.map(([name, unit]) => el('tr', {},
      el('th', { scope: 'row' }, withUnit(name, unit === '1' ? '' : `(${unitName(unit)})`)),
      measured.map((job) => el('td', { class: 'number' }, value(job, name))))))));
};
