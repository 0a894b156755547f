// The page: what is chosen, what runs, what there is of it.

import { Controls } from './controls.js';
import { Curves } from './curves.js';
import { byId, choices, el, save } from './dom.js';
import { Engine } from './engine.js';
import { commandOf, fromFragment, requestOf, stateOf, toFragment } from './state.js';
import { Timeline } from './timeline.js';
import { Zones } from './zones.js';

// Pause after the last change before it is run, in milliseconds.
const CALM = 250;
// The largest file that is read.
const MOST_BYTES = 1 << 20;

let starts = [];
let state = null;
let overview = null;
let profile = null;
let shown = new Map();
let isFollowing = true;
let later = 0;

const curves = new Curves();
const timeline = new Timeline();
const zones = new Zones();

const say = (text) => {
  byId('status').textContent = text;
};

const current = () => starts.find((start) => start.id === state.start) ?? starts[0];
const experimentText = () => state.experiment ?? current()?.text ?? '';

// Everything that shows the state.
const render = () => {
  byId('start').value = state.start;
  byId('hint').textContent = current()?.hint ?? '';
  byId('quick').checked = state.quick;
  byId('seed').value = state.seed;
  const fill = (id, text) => {
    // Not under the fingers of who types.
    if (document.activeElement !== byId(id) && byId(id).value !== text) byId(id).value = text;
  };
  fill('experiment', experimentText());
  fill('set', state.set.join('\n'));
  if (state.drive !== null) fill('drive', state.drive);
  else if (profile !== null) fill('drive', profile);
  byId('command').textContent = commandOf(state);
  controls.show(state.set, state.drive ?? profile ?? '', overview?.drive);
};

const change = (changes, isSoon = true) => {
  state = { ...state, ...changes };
  render();
  toFragment(state).then((fragment) => history.replaceState(null, '', fragment));
  clearTimeout(later);
  if (byId('auto').checked) later = setTimeout(run, isSoon ? CALM : 0);
};
const controls = new Controls((set) => change({ set }));

const run = () => {
  clearTimeout(later);
  byId('stop').disabled = false;
  byId('progress').value = 0;
  say('Running');
  engine.ask({ type: 'run', request: requestOf(state), window: null });
};

const showProblems = (problems) => {
  const line = ({ text, file, line: number }) => {
    const editor = { 'experiment.toml': 'experiment', 'drive.toml': 'drive' }[file];
    const isOurs = editor !== undefined && number;
    return el('p', {}, isOurs ? el('button', { type: 'button', onclick: () => goTo(editor, number) }, text) : text);
  };
  byId('problems').replaceChildren(...problems.map(line));
};

// Selects a line of an editor.
const goTo = (id, line) => {
  const editor = byId(id);
  const lines = editor.value.split('\n');
  const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  editor.focus();
  editor.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
};

const showPoint = (index) => {
  const pictures = shown.get(index);
  if (!pictures) return;
  byId('point').value = index;
  const inMs = (ns) => String(Number((ns / 1e6).toPrecision(6)));
  for (const [id, ns] of [['from', pictures.from_ns], ['for', pictures.until_ns - pictures.from_ns]]) {
    if (document.activeElement !== byId(id)) byId(id).value = inMs(ns);
  }
  timeline.show(pictures);
  zones.show(pictures);
};

const opened = (message) => {
  ({ overview, profile } = message);
  shown = new Map();
  isFollowing = true;
  showProblems([]);
  curves.begin(overview);
  const name = ({ series, x_label: label }) => `${series}, ${overview.axis.name || 'axis'} ${label}`;
  choices(byId('point'), overview.points.map((point, index) => [String(index), name(point)]));
  byId('progress').max = overview.points.length;
  byId('results').replaceChildren();
  byId('figure').replaceChildren();
  render();
};

const addPoint = ({ index, point, units, pictures, figure, isAgain }) => {
  if (pictures) shown.set(index, pictures);
  if (isAgain) {
    showPoint(index);
    return;
  }
  curves.add(point, units);
  if (curves.points.length === 1) performance.mark('first-curve');
  byId('progress').value = curves.points.length;
  say(`${curves.points.length} of ${overview.points.length} points`);
  if (isFollowing) showPoint(index);
  if (figure) {
    const alt = `${overview.id}: ${overview.title}; the numbers are in the table above`;
    byId('figure').replaceChildren(el('img', { alt, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(figure)}` }));
  }
};

const done = ({ files }) => {
  byId('stop').disabled = true;
  say(`Done: ${overview.points.length} points`);
  const offer = ([name, text]) =>
    el('li', {}, el('button', { type: 'button', class: 'plain', 'data-file': name, onclick: () => save(name, text) }, name));
  byId('results').replaceChildren(...files.map(offer));
  results = new Map(files);
};
let results = new Map();

const problems = ({ problems: all }) => {
  byId('stop').disabled = true;
  say(all.length === 1 ? 'There is a problem' : `There are ${all.length} problems`);
  showProblems(all);
};

const ready = async (message) => {
  if (starts.length > 0) return;
  starts = message.starts;
  byId('version').textContent = `zonelab ${message.version}`;
  const groups = [...new Set(starts.map((start) => start.group))];
  const options = (group) => starts.filter((start) => start.group === group).map((start) => el('option', { value: start.id }, start.title));
  byId('start').replaceChildren(...groups.map((group) => el('optgroup', { label: group }, options(group))));
  const linked = await fromFragment(location.hash);
  const isKnown = linked !== null && (linked.experiment !== null || starts.some((start) => start.id === linked.start));
  state = isKnown ? linked : stateOf(starts[0]);
  if (!starts.some((start) => start.id === state.start)) state.start = starts[0].id;
  render();
  run();
};

const engine = new Engine((message) => {
  const handlers = { ready, opened, point: addPoint, done, problems };
  handlers[message.type]?.(message);
});

const on = (id, event, handler) => byId(id).addEventListener(event, handler);
on('start', 'change', () => {
  byId('drive').value = '';
  change(stateOf(starts.find((start) => start.id === byId('start').value)), false);
});
on('run', 'click', run);
on('stop', 'click', () => {
  engine.stop();
  byId('stop').disabled = true;
  say('Stopped');
});
on('undo', 'click', () => change(stateOf(current()), false));
on('quick', 'change', () => change({ quick: byId('quick').checked }));
on('seed', 'change', () => change({ seed: Math.max(1, Math.trunc(Number(byId('seed').value)) || 1) }));
on('experiment', 'input', () => change({ experiment: byId('experiment').value }));
on('drive', 'input', () => change({ drive: byId('drive').value }));
on('set', 'input', () => change({ set: byId('set').value.split('\n').map((line) => line.trim()).filter(Boolean) }));
on('point', 'change', () => {
  isFollowing = false;
  showPoint(Number(byId('point').value));
});
on('look', 'click', () => {
  isFollowing = false;
  const ns = (id) => Math.max(0, Math.round(Number(byId(id).value) * 1e6) || 0);
  const window = { from_ns: ns('from'), for_ns: Math.max(1, ns('for')) };
  engine.ask({ type: 'look', index: Number(byId('point').value), window });
});
on('load', 'change', async () => {
  const file = byId('load').files[0];
  byId('load').value = '';
  if (!file) return;
  if (file.size > MOST_BYTES) {
    showProblems([{ text: `${file.name} is too large for an experiment or a drive` }]);
    return;
  }
  const text = await file.text();
  // A drive has a geometry, an experiment has an axis, jobs and series.
  change(/^\s*\[geometry\]/m.test(text) ? { drive: text } : { experiment: text, set: [], quick: false }, false);
});
on('save-experiment', 'click', () => save('experiment.toml', `# ${commandOf({ ...state, experiment: '' })}\n${experimentText()}`));
on('save-drive', 'click', () => save('drive.toml', overview?.drive_toml ?? ''));
on('share', 'click', async () => {
  const url = new URL(location.href);
  url.hash = await toFragment(state);
  history.replaceState(null, '', url);
  try {
    await navigator.clipboard.writeText(url.href);
    byId('shared').textContent = 'The link is on the clipboard.';
  } catch {
    byId('shared').textContent = 'The address of this page is the link.';
  }
});
addEventListener('hashchange', async () => {
  const linked = await fromFragment(location.hash);
  if (linked !== null) change(linked, false);
});
addEventListener('resize', () => {
  curves.draw();
  showPoint(Number(byId('point').value));
});

// For tests: the texts of the results, by name.
addEventListener('zonelab-results', (event) => event.detail(results));
