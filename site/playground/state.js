// What is to be run, and the part of a link that says it.

// What a link says by default; keys that are as here are left out of it.
const fresh = () => ({ start: '', experiment: null, drive: null, set: [], quick: false, seed: 1 });

// The state of a starting point.
export const stateOf = (start) => ({ ...fresh(), start: start.id, set: [...start.set], quick: start.quick });

// What the drive, the host and the report are asked for.
export const requestOf = (state) => ({
  id: state.start,
  experiment: state.experiment,
  drive: state.drive,
  set: state.set,
  quick: state.quick,
  seed: state.seed,
});

const toBase64 = (bytes) => {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
};
const fromBase64 = (text) => {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
};
const through = async (bytes, stream) => {
  const out = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(out).arrayBuffer());
};

// The most that a link may unpack to: who made it is not known.
const MOST = 1 << 20;

// The state as the fragment of a link: compressed JSON of what differs from its start.
export const toFragment = async (state) => {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  return `#1${toBase64(await through(bytes, new CompressionStream('deflate-raw')))}`;
};

// The state that a fragment says; null: none, or one that is not understood.
export const fromFragment = async (fragment) => {
  if (!fragment.startsWith('#1')) return null;
  try {
    const bytes = await through(fromBase64(fragment.slice(2)), new DecompressionStream('deflate-raw'));
    if (bytes.length > MOST) return null;
    return checked(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return null;
  }
};

// Only what a state can be: a link is from anywhere.
const checked = (said) => {
  const text = (value) => (typeof value === 'string' ? value : null);
  const seed = Number(said.seed);
  return {
    start: text(said.start) ?? '',
    experiment: text(said.experiment),
    drive: text(said.drive),
    set: Array.isArray(said.set) ? said.set.filter((line) => typeof line === 'string') : [],
    quick: said.quick === true,
    seed: Number.isSafeInteger(seed) && seed > 0 ? seed : 1,
  };
};

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// The command that gives the same results.
export const commandOf = (state) => {
  const words = ['zonelab', 'run', state.experiment === null ? state.start : 'experiment.toml'];
  if (state.drive !== null) words.push('--set', 'profile=drive.toml');
  for (const line of state.set) words.push('--set', line);
  if (state.quick) words.push('--quick');
  if (state.seed !== 1) words.push('--seed', String(state.seed));
  return words.map(quoted).join(' ');
};
