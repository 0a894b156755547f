// Figures of now, and tables of latencies.

// Hours, minutes and seconds.
const clock = (ns) => {
  const seconds = Math.floor(ns / 1e9);
  const two = (value) => String(value % 60).padStart(2, '0');
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60))}:${two(seconds)}`;
};

const factsSection = () => {
  const list = el('dl', { class: 'facts wide', id: 'facts' });
  const fact = (name, value) => el('div', {}, el('dt', {}, name), el('dd', {}, value));
  const limit = (value) => (value === null ? 'unlimited' : count(value));
  // Names of states are those of the specification; what is open is active too.
  const resources = (state) => {
    const states = letters(state.zones.states);
    const zoned = state.namespaces.filter((space) => space.is_zoned);
    return zoned.flatMap((space) => {
      const own = states.slice(space.first_zone, space.first_zone + space.zones);
      const open = own.filter((one) => 'IX'.includes(one)).length;
      const active = open + own.filter((one) => one === 'C').length;
      const name = zoned.length > 1 ? ` (namespace ${space.nsid})` : '';
      return [fact(`open zones${name}`, `${count(open)} of ${limit(space.max_open)}`), fact(`active zones${name}`, `${count(active)} of ${limit(space.max_active)}`)];
    });
  };
  return {
    node: el('section', {}, el('h2', {}, 'Now'), list),
    update: (state) => {
      const { totals, connections, wear, write_buffer: buffer } = state;
      list.replaceChildren(
        fact('up', clock(state.uptime_ns)),
        fact('connections', count(connections.open)),
        fact('controllers', count(state.controllers)),
        fact('commands in the drive', count(state.in_flight)),
        ...resources(state),
        ...(buffer ? [fact('write buffer', `${bytes(buffer.fill_bytes)} of ${bytes(buffer.size_bytes)}`)] : []),
        fact('hosts wrote', bytes(totals.host_written_bytes)),
        fact('hosts read', bytes(totals.host_read_bytes)),
        fact('write amplification', totals.write_amplification === null ? '–' : number(totals.write_amplification)),
        fact('zones reset', count(totals.resets)),
        fact('zones finished', count(totals.finishes)),
        fact('erasures of a block', `${count(wear.min)} to ${count(wear.max)}, mean ${number(wear.mean)}`),
        fact('failed commands', count(sum(Object.values(operations(state)).map((row) => row.errors)))),
      );
    },
  };
};

const latencySection = (past) => {
  const span = el('select', { id: 'window' },
    el('option', { value: 10 }, '10 s'), el('option', { value: 60 }, '60 s'), el('option', { value: 120 }, '2 min'));
  const table = (id, first) => {
    const body = el('tbody', {});
    const head = [first, 'per second', 'P50', 'P99', 'max'];
    const node = el('div', { class: 'scroll' }, el('table', { id },
      el('thead', {}, el('tr', {}, head.map((name, column) => el('th', { scope: 'col', class: column ? 'number' : null }, name)))), body));
    const fill = (now, then, ns, nameOf) => {
      const rows = Object.entries(now).map(([name, bins]) => {
        const of = recent(bins, then[name]);
        const time = (value) => el('td', { class: 'number' }, value === null ? '–' : duration(value));
        return el('tr', { 'data-name': name }, el('th', { scope: 'row' }, nameOf(name)),
          el('td', { class: 'number' }, ns > 0 ? number((of.total / ns) * 1e9) : '–'), time(of.p50), time(of.p99), time(of.max));
      });
      body.replaceChildren(...(rows.length ? rows : [el('tr', {}, el('td', { colspan: 5, class: 'soft' }, 'none yet'))]));
    };
    return { node, fill };
  };
  const latency = table('latency', 'operation');
  const lateness = table('lateness', 'queue');
  const update = () => {
    const { now, then, ns } = past.span(Number(span.value));
    latency.fill(now.latencies, then.latencies, ns, (name) => name.replace('_', ' '));
    lateness.fill(now.lateness, then.lateness, ns, (qid) => (qid === '0' ? 'admin' : qid));
  };
  span.addEventListener('change', () => { if (past.all().length) update(); });
  return {
    node: el('section', {}, el('h2', {}, 'Latencies'),
      el('div', { class: 'tools' }, el('label', {}, 'Of the last', span)),
      el('div', { class: 'parts' },
        el('div', {}, el('h3', {}, 'Of the model'), latency.node,
          el('p', { class: 'soft small' }, 'From when a command was there as a whole until the drive had it done.')),
        el('div', {}, el('h3', {}, 'Lateness'), lateness.node,
          el('p', { class: 'soft small' }, 'How much later than that the response was sent.')))),
    update,
  };
};
