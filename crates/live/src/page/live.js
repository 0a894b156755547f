// Asking the server once a second, and showing what it says.

const SCHEMA = 1;
const PERIOD_MS = 1000;
const PATIENCE_MS = 5000;

const past = history();
const place = document.getElementById('live');
const link = document.getElementById('link');
let sections = null;
let shape = '';
let lostAt = null;

const build = (state) => {
  document.title = `${state.profile} · zonelab`;
  document.getElementById('title').textContent = state.profile;
  const layer = state.layer ? [layerSection(past)] : [];
  const parts = [factsSection(), ...layer, zoneSection(), throughputSection(past), latencySection(past), loadSection(past, state)];
  place.replaceChildren(...parts.map((part) => part.node),
    el('footer', {}, `${state.nqn} · zonelab ${state.version} · `, el('a', { href: '/metrics' }, 'metrics'), ' · ', el('a', { href: '/api/state' }, 'JSON')));
  return parts;
};

const say = (text, look) => {
  // Said again only if it is something else, for those who hear it.
  if (link.textContent !== text) link.textContent = text;
  link.className = look;
  document.body.classList.toggle('lost', look === 'down');
};

const take = (state) => {
  if (state.schema !== SCHEMA) {
    say('The server is of another version than this page: load it again.', 'down');
    return;
  }
  past.add(state);
  // Another drive behind the same address.
  const now = [state.nqn, state.profile, state.dies.busy_ns.length].join('\n');
  if (now !== shape) sections = build(state);
  shape = now;
  sections.forEach((section) => section.update(state));
  lostAt = null;
  say('Live', 'up');
};

const ask = async () => {
  if (document.hidden) return;
  let state = null;
  try {
    const answer = await fetch('/api/state', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.ok) state = await answer.json();
  } catch {
    // Refused, cut off or late: it is lost.
  }
  if (state) {
    take(state);
    return;
  }
  lostAt ??= new Date().toLocaleTimeString();
  say(`Connection lost at ${lostAt}: what is shown is old. Trying again.`, 'down');
};

const turn = () => ask().finally(() => setTimeout(turn, PERIOD_MS));
turn();
