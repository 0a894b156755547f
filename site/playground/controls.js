// Sliders and lists for settings of the drive. Each owns some keys of the profile, and each of
// its options says values for them, as lines after `--set drive.`; an empty value removes a key
// that the profile states.

import { byId, el } from './dom.js';

const steps = (key, values, more = []) =>
  values.map((value) => ({ label: String(value), set: [`${key}=${value}`, ...more] }));

const CONTROLS = [
  {
    id: 'granularity', label: 'Finish granularity', slider: true, shows: 'finish.granularity',
    options: steps('finish.granularity', ['16KiB', '32KiB', '64KiB', '128KiB', '256KiB', '512KiB', '1MiB', '2MiB']),
  },
  {
    id: 'finish', label: 'Finish design', shows: 'finish.design',
    options: [
      { label: 'fill', set: ['finish.design=fill', 'finish.yield_to_host=false'] },
      { label: 'fill, yields to the host', set: ['finish.design=fill', 'finish.yield_to_host=true'] },
      { label: 'metadata', set: ['finish.design=metadata', 'finish.granularity=', 'finish.pause=', 'finish.yield_to_host=', 'finish.max_hold=', 'finish.path=', 'finish.extent='] },
    ],
  },
  {
    id: 'reset', label: 'Reset design', shows: 'reset.timing',
    options: [
      { label: 'synchronous', set: ['reset.timing=synchronous', 'reset.erase_at=', 'reset.preemptive=false', 'reset.max_hold='] },
      { label: 'synchronous, preemptive', set: ['reset.timing=synchronous', 'reset.erase_at=', 'reset.preemptive=true'] },
      { label: 'asynchronous, at the first write', set: ['reset.timing=asynchronous', 'reset.erase_at=first-write', 'reset.preemptive=false', 'reset.max_hold='] },
      { label: 'asynchronous, in the background', set: ['reset.timing=asynchronous', 'reset.erase_at=background', 'reset.preemptive=false', 'reset.max_hold='] },
      { label: 'in the background, preemptive', set: ['reset.timing=asynchronous', 'reset.erase_at=background', 'reset.preemptive=true'] },
    ],
  },
  {
    id: 'extent', label: 'Blocks that a reset erases', shows: 'reset.extent',
    options: steps('reset.extent', ['partial', 'full']),
  },
  {
    id: 'channels', label: 'Channels', slider: true, shows: 'geometry.channels',
    options: steps('geometry.channels', [1, 2, 4, 8, 16], ['geometry.blocks_per_plane=']),
  },
  {
    id: 'dies', label: 'Dies of a chip', slider: true, shows: 'geometry.dies',
    options: steps('geometry.dies', [1, 2, 4, 8], ['geometry.blocks_per_plane=']),
  },
  {
    id: 'buffer', label: 'Write buffer', slider: true, shows: 'write_buffer.size', none: 'none',
    options: [
      { label: 'none', set: ['write_buffer.mode=none', 'write_buffer.size='] },
      ...['1MiB', '4MiB', '16MiB', '64MiB', '256MiB'].map((size) => ({ label: size, set: ['write_buffer.mode=write-back', `write_buffer.size=${size}`] })),
    ],
  },
  {
    id: 'read', label: 'Page read', slider: true, shows: 'media.read',
    options: steps('media.read', ['15us', '30us', '60us', '120us', '240us']),
  },
  {
    id: 'program', label: 'Page program', slider: true, shows: 'media.program',
    options: steps('media.program', ['175us', '350us', '700us', '1400us', '2800us']),
  },
  {
    id: 'erase', label: 'Block erasure', slider: true, shows: 'media.erase',
    options: steps('media.erase', ['900us', '1750us', '3500us', '7ms', '14ms']),
  },
];

const keyOf = (line) => line.slice(0, line.indexOf('='));
const keysOf = (control) => new Set(control.options.flatMap((option) => option.set.map(keyOf)));

// Lines without those of a control. Two controls may own the same key: the later line wins.
const without = (lines, control) => {
  const keys = keysOf(control);
  return lines.filter((line) => !line.startsWith('drive.') || !keys.has(keyOf(line.slice(6)).trim()));
};

const valueAt = (drive, path) => path.split('.').reduce((table, key) => table?.[key], drive);

const removes = (line) => line.endsWith('=');

// The option that lines say; -1: none of them. What they remove depends on the profile.
const chosen = (control, lines) =>
  control.options.findIndex((option) => option.set.every((line) => removes(line) || lines.includes(`drive.${line}`)));

// The keys that a profile states. Its text is one that the program has read, or will complain of.
const stated = (profile) => {
  const keys = new Set();
  let table = '';
  for (const line of profile.split('\n')) {
    const [, head] = /^\s*\[([\w.]+)\]/.exec(line) ?? [];
    const [, key] = /^\s*([\w.]+)\s*=/.exec(line) ?? [];
    if (head !== undefined) table = `${head}.`;
    else if (key !== undefined) keys.add(table + key);
  }
  return keys;
};

// A time or size as a number, to find the nearest option of a slider.
const magnitude = (text) => {
  const match = /^([\d.]+)\s*([a-zA-Z]*)$/.exec(String(text ?? ''));
  const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824 };
  return match ? Number(match[1]) * (units[match[2]] ?? 1) : NaN;
};
const nearest = (control, value) => {
  const own = magnitude(value);
  if (!(own > 0)) return 0;
  const far = control.options.map((option) => Math.abs(Math.log(magnitude(option.label) / own)));
  // Words such as "none" are far from every number.
  const distance = (index) => (Number.isFinite(far[index]) ? far[index] : Infinity);
  return far.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
};

// Shows all controls for settings and the drive that they lead to. `change` is called with new
// settings.
export class Controls {
  constructor(change) {
    this.lines = [];
    this.profile = '';
    this.parts = CONTROLS.map((control) => this.#build(control, change));
    byId('controls').replaceChildren(...this.parts.map((part) => part.node));
  }

  #build(control, change) {
    const id = `control-${control.id}`;
    const output = el('output', { for: id });
    const pick = (index) => {
      const rest = without(this.lines, control);
      const keys = stated(this.profile);
      const fits = (line) => !removes(line) || keys.has(keyOf(line));
      const own = control.options[index]?.set.filter(fits) ?? [];
      change([...rest, ...own.map((line) => `drive.${line}`)]);
    };
    let input;
    if (control.slider) {
      input = el('input', { id, type: 'range', min: 0, max: control.options.length - 1, step: 1, list: '' });
      input.addEventListener('input', () => pick(Number(input.value)));
    } else {
      const own = el('option', { value: -1 }, '');
      input = el('select', { id }, own, control.options.map((option, index) => el('option', { value: index }, option.label)));
      input.addEventListener('change', () => pick(Number(input.value)));
    }
    const node = el('div', { class: 'control' }, el('label', { for: id }, control.label), output, input);
    return { control, node, input, output };
  }

  // Shows what is set, and of what is not, what the profile says: its text, and the drive of it.
  show(lines, profile, drive) {
    this.lines = lines;
    this.profile = profile;
    for (const { control, node, input, output } of this.parts) {
      const index = chosen(control, lines);
      const own = valueAt(drive, control.shows) ?? control.none ?? '–';
      const text = index < 0 ? String(own) : control.options[index].label;
      node.classList.toggle('changed', index >= 0);
      if (control.slider) {
        input.value = index < 0 ? nearest(control, own) : index;
        input.setAttribute('aria-valuetext', text);
        output.value = text;
      } else {
        input.options[0].textContent = `as the profile says (${own})`;
        input.value = index;
        output.value = '';
      }
    }
  }
}
