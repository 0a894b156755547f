// The zone map: a cell for each zone, filled to its write pointer in the colour
// of its state, or coloured by how often its flash was erased.

const CELLS = [40, 32, 28, 24, 20, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2];
const MOST_HIGH = 380;

const zoneField = (pin) => {
  const frame = el('div', { class: 'chart field' });
  const canvas = el('canvas', { tabindex: 0, role: 'img' });
  frame.append(canvas);
  const tip = tooltip(frame);
  let zones = null;
  let shows = 'state';
  let at = null;
  let grid = { cell: 0, columns: 1 };
  let colours = {};

  const learnColours = () => {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries([...Object.keys(STATES).map((state) => `z${state}`), 's1', 'page', 'text', 'line']
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  const share = (zone) => (zones.states[zone] === 'V' ? 1 : zones.written[zone] / zones.capacity_lbas);
  const cellOf = (width) => {
    const fits = (cell) => Math.ceil(zones.count / Math.max(1, Math.floor(width / cell))) * cell <= MOST_HIGH;
    return CELLS.find(fits) ?? CELLS[CELLS.length - 1];
  };
  const place = (zone) => [(zone % grid.columns) * grid.cell, Math.floor(zone / grid.columns) * grid.cell];

  const paintZone = (pen, zone, worst) => {
    const [x, y] = place(zone);
    const size = grid.cell - (grid.cell > 4 ? 1 : 0);
    const state = zones.states[zone];
    pen.fillStyle = colours.zE;
    pen.fillRect(x, y, size, size);
    if (shows === 'wear') {
      if (zones.erases[zone] === null) return;
      pen.globalAlpha = worst > 0 ? zones.erases[zone] / worst : 0;
      pen.fillStyle = colours.s1;
      pen.fillRect(x, y, size, size);
      pen.globalAlpha = 1;
      return;
    }
    if (state === 'E') return;
    pen.fillStyle = colours[`z${state}`];
    // Too small for a level: the whole cell has the colour. A zone that is not
    // empty shows its state at its foot, however little is written.
    const dead = state === 'R' || state === 'O';
    const high = size < 5 || dead ? size : Math.max(2, Math.round(size * share(zone)));
    pen.fillRect(x, y + size - high, size, high);
  };

  const paint = () => {
    if (!zones || frame.clientWidth === 0) return;
    const width = Math.floor(frame.clientWidth);
    const cell = cellOf(width);
    grid = { cell, columns: Math.max(1, Math.floor(width / cell)) };
    const high = Math.ceil(zones.count / grid.columns) * cell;
    const wide = Math.min(zones.count, grid.columns) * cell;
    const dots = devicePixelRatio || 1;
    canvas.width = Math.ceil(wide * dots);
    canvas.height = Math.ceil(high * dots);
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    const pen = canvas.getContext('2d');
    pen.scale(dots, dots);
    const worst = Math.max(...zones.erases.reduce(([most], erases) => [Math.max(most, erases ?? 0)], [0]));
    for (let zone = 0; zone < zones.count; zone += 1) paintZone(pen, zone, worst);
    if (at !== null) {
      const [x, y] = place(at);
      pen.strokeStyle = colours.text;
      pen.lineWidth = 2;
      pen.strokeRect(x - 0.5, y - 0.5, cell, cell);
    }
  };

  const figures = (zone) => {
    const { lba_bytes: block, size_lbas: size, capacity_lbas: capacity } = zones;
    const of = zones.namespaces.find((space) => zone >= space.first_zone && zone < space.first_zone + space.zones);
    const start = (zone - (of ? of.first_zone : 0)) * size;
    const written = zones.written[zone];
    const mean = zones.erases[zone] === null ? null : zones.erases[zone] / Math.max(1, zones.erase_blocks);
    const conventional = zones.states[zone] === 'V';
    const name = zones.namespaces.length > 1 && of ? `Zone ${zone - of.first_zone} of namespace ${of.nsid}` : `Zone ${zone}`;
    return {
      title: `${name}: ${STATES[zones.states[zone]]}`,
      rows: [
        conventional ? null : ['start', `LBA 0x${start.toString(16)}`],
        conventional ? null : ['write pointer', `+${count(written)} blocks`],
        conventional ? null : ['written', `${bytes(written * block)} of ${bytes(capacity * block)}, ${percent(written / capacity)}`],
        ['erasures of a block', mean === null ? 'on no flash' : `${number(mean)} on average, at most ${count(zones.worst[zone])}`],
      ].filter(Boolean),
    };
  };
  const show = () => {
    if (at === null || at >= zones.count) {
      tip.hide();
      return;
    }
    const { title, rows } = figures(at);
    const [x, y] = place(at);
    tip.show([el('strong', {}, title), el('table', {}, el('tbody', {}, rows.map(([name, value]) =>
      el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, value)))))], x + grid.cell / 2, y);
  };
  const point = (zone) => {
    if (zone === at) return;
    at = zone;
    paint();
    show();
  };
  const under = (event) => {
    if (!zones) return null;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const column = Math.floor(x / grid.cell);
    const zone = Math.floor(y / grid.cell) * grid.columns + column;
    return x >= 0 && y >= 0 && column < grid.columns && zone < zones.count ? zone : null;
  };
  canvas.addEventListener('pointermove', (event) => point(under(event)));
  canvas.addEventListener('pointerdown', (event) => point(under(event)));
  canvas.addEventListener('pointerleave', (event) => { if (event.pointerType !== 'touch') point(null); });
  canvas.addEventListener('blur', () => point(null));
  canvas.addEventListener('click', (event) => pin(under(event)));
  canvas.addEventListener('keydown', (event) => {
    if (!zones) return;
    if (event.key === 'Escape') point(null);
    if (event.key === 'Enter' && at !== null) pin(at);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns, Home: -zones.count, End: zones.count };
    if (!(event.key in steps)) return;
    event.preventDefault();
    point(at === null ? 0 : Math.max(0, Math.min(zones.count - 1, at + steps[event.key])));
  });
  const restyle = () => {
    learnColours();
    paint();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
  learnColours();
  whenSized(frame, paint);
  return {
    frame,
    figures: (zone) => (zones && zone < zones.count ? figures(zone) : null),
    show: (what) => {
      shows = what;
      paint();
    },
    update: (fresh) => {
      zones = fresh;
      canvas.setAttribute('aria-label', `Map of ${count(zones.count)} zones. Arrow keys go from zone to zone, Enter keeps the figures of one below.`);
      paint();
      if (at !== null) show();
    },
  };
};

const zoneSection = () => {
  let pinned = null;
  const below = el('div', { id: 'pinned' });
  const hint = el('p', { class: 'soft small' }, 'Point at a zone for its figures; click, or press Enter, to keep them here.');
  const showPinned = () => {
    const figures = pinned === null ? null : field.figures(pinned);
    below.replaceChildren(...(figures ? [
      el('h3', {}, figures.title),
      el('dl', { class: 'facts' }, figures.rows.map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    ] : [hint]));
  };
  const field = zoneField((zone) => {
    pinned = zone;
    showPinned();
  });
  const key = el('div', { class: 'legend', id: 'zone-legend' });
  const choice = el('select', { id: 'zone-shows' },
    el('option', { value: 'state' }, 'state and fill'), el('option', { value: 'wear' }, 'wear'));
  let zones = null;
  const legendOf = () => {
    if (choice.value === 'wear') {
      const known = zones.erases.filter((erases) => erases !== null);
      const most = known.reduce((all, erases) => Math.max(all, erases), 0) / Math.max(1, zones.erase_blocks);
      return [0, 1, 2, 3].map((step) => swatch(`wear${step}`, step === 0 ? '0 erasures of a block' : number((most * step) / 3)));
    }
    const many = {};
    for (const state of zones.states) many[state] = (many[state] ?? 0) + 1;
    return Object.keys(STATES).filter((state) => many[state]).map((state) => swatch(`z${state}`, `${STATES[state]} ${count(many[state])}`));
  };
  choice.addEventListener('change', () => {
    field.show(choice.value);
    if (zones) key.replaceChildren(...legendOf());
  });
  showPinned();
  return {
    node: el('section', { id: 'zones' }, el('h2', {}, 'Zones'),
      el('div', { class: 'tools' }, el('label', {}, 'Show', choice)), field.frame, key, below),
    update: (state) => {
      zones = zonesOf(state);
      field.update(zones);
      key.replaceChildren(...legendOf());
      if (pinned !== null) showPinned();
    },
  };
};
