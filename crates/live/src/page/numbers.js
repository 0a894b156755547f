// What the server says, unpacked, and differences of it.

// `[value, how many, ...]` as a list with one element for each.
const unrolled = (runs) => {
  const all = [];
  for (let i = 0; i < runs.length; i += 2) {
    for (let many = runs[i + 1]; many > 0; many -= 1) all.push(runs[i]);
  }
  return all;
};
// `E12I1` likewise.
const letters = (text) => unrolled([...text.matchAll(/([A-Z])(\d+)/g)].flatMap(([, letter, many]) => [letter, Number(many)]));

const zonesOf = (state) => {
  const { zones } = state;
  return {
    ...zones,
    states: letters(zones.states),
    written: unrolled(zones.written_lbas),
    erases: unrolled(zones.erases),
    worst: unrolled(zones.max_erases),
    namespaces: state.namespaces,
  };
};

// What a histogram got since `then`, a former one: how many, P50, P99, longest.
const recent = (now, then = []) => {
  const before = new Map();
  for (let i = 0; i < then.length; i += 2) before.set(then[i], then[i + 1]);
  const bins = [];
  let total = 0;
  for (let i = 0; i < now.length; i += 2) {
    const many = now[i + 1] - (before.get(now[i]) ?? 0);
    if (many > 0) bins.push([now[i], many]);
    total += Math.max(0, many);
  }
  const at = (share) => {
    let below = 0;
    const bin = bins.find(([, many]) => { below += many; return below >= total * share; });
    return bin ? bin[0] : null;
  };
  return { total, p50: at(0.5), p99: at(0.99), max: bins.length ? bins[bins.length - 1][0] : null };
};

const sum = (values) => values.reduce((all, value) => all + value, 0);
// Commands and bytes of all namespaces, by operation.
const operations = (state) => {
  const all = {};
  for (const rows of [...state.namespaces.map((namespace) => namespace.operations), state.elsewhere]) {
    for (const [name, row] of Object.entries(rows)) {
      all[name] ??= { commands: 0, errors: 0, bytes: 0 };
      for (const key of Object.keys(all[name])) all[name][key] += row[key];
    }
  }
  return all;
};

// Samples of the last two minutes, oldest first.
const KEPT_NS = 120e9;
const history = () => {
  let samples = [];
  return {
    add: (state) => {
      const { zones, ...sample } = state;
      sample.operations = operations(state);
      const last = samples[samples.length - 1];
      // Counters that went back are of another server, or of a formatted drive; those of
      // the layer begin again with each mount.
      const fell = last && (sample.uptime_ns <= last.uptime_ns
        || sample.totals.erased_blocks < last.totals.erased_blocks
        || sample.totals.host_written_bytes < last.totals.host_written_bytes
        || sample.totals.host_read_bytes < last.totals.host_read_bytes
        || sample.layer?.mounts !== last.layer?.mounts);
      samples = fell ? [] : samples.filter((old) => sample.uptime_ns - old.uptime_ns <= KEPT_NS);
      samples.push(sample);
    },
    all: () => samples,
    // The newest sample, and one that is `seconds` older, or as old as there is.
    span: (seconds) => {
      const now = samples[samples.length - 1];
      const old = samples.filter((sample) => now.uptime_ns - sample.uptime_ns >= seconds * 1e9);
      const then = old[old.length - 1] ?? samples[0];
      return { now, then, ns: now.uptime_ns - then.uptime_ns };
    },
  };
};
