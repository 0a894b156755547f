// The states of zones at a time of a point, as a map.

import { byId, el, time } from './dom.js';

const STATES = { E: 'empty', I: 'implicitly opened', X: 'explicitly opened', C: 'closed', F: 'full', R: 'read-only', O: 'offline' };
// Zones that are shown at most.
const MOST = 2048;
// How long it takes to play a run, in milliseconds.
const PLAY = 6000;

export class Zones {
  #zones = { count: 0, changes: [] };
  #end = 0;
  #cells = [];
  #playing = null;

  constructor() {
    byId('time').addEventListener('input', () => this.#at());
    byId('play').addEventListener('click', () => (this.#playing === null ? this.#play() : this.#pause()));
    // One stop for the keyboard; arrows go from zone to zone.
    byId('zones').addEventListener('keydown', (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10, Home: -MOST, End: MOST }[event.key];
      const index = this.#cells.indexOf(event.target);
      if (by === undefined || index < 0) return;
      event.preventDefault();
      this.#focus(Math.min(this.#cells.length - 1, Math.max(0, index + by)));
    });
  }

  show({ zones, end_ns: end }) {
    const isOther = zones.count !== this.#zones.count || this.#cells.length === 0;
    this.#zones = zones;
    this.#end = end;
    if (isOther) this.#build();
    this.#at();
  }

  #build() {
    const count = Math.min(this.#zones.count, MOST);
    this.#cells = Array.from({ length: count }, (_, zone) => {
      const say = () => this.#say(zone);
      return el('button', { type: 'button', tabindex: zone === 0 ? 0 : -1, onfocus: say, onpointerenter: say });
    });
    byId('zones').classList.toggle('small', count > 256);
    byId('zones').replaceChildren(...this.#cells);
  }

  #focus(zone) {
    for (const cell of this.#cells) cell.tabIndex = -1;
    this.#cells[zone].tabIndex = 0;
    this.#cells[zone].focus();
  }

  get #now() {
    return (Number(byId('time').value) / 1000) * this.#end;
  }

  #statesAt(now) {
    const states = new Array(this.#zones.count).fill('E');
    for (const [at, zone, state] of this.#zones.changes) {
      if (at > now) break;
      states[zone] = state;
    }
    return states;
  }

  #at() {
    const states = this.#statesAt(this.#now);
    this.#cells.forEach((cell, zone) => {
      cell.className = `z${states[zone]}`;
      cell.setAttribute('aria-label', `Zone ${zone}: ${STATES[states[zone]]}`);
    });
    const tally = Object.entries(STATES).map(([letter, name]) => [letter, name, states.filter((state) => state === letter).length]);
    const some = tally.filter(([, , count]) => count > 0);
    byId('states').replaceChildren(
      ...some.map(([letter, name, count]) => el('span', { class: 'key' }, el('span', { class: `swatch z${letter}` }), `${name} ${count}`)),
    );
    byId('now').value = time(this.#now);
    byId('time').setAttribute('aria-valuetext', time(this.#now));
    const { dropped, count } = this.#zones;
    if (dropped > 0) byId('states').append(`${dropped} later changes were not kept`);
    if (count > MOST) byId('states').append(`the first ${MOST} of ${count} zones`);
  }

  #say(zone) {
    const own = this.#zones.changes.filter(([at, of]) => of === zone && at <= this.#now);
    const last = own[own.length - 1];
    byId('zone').textContent = last ? `Zone ${zone}: ${STATES[last[2]]} since ${time(last[0])}, ${own.length} changes before` : `Zone ${zone}: empty`;
  }

  #play() {
    const slider = byId('time');
    if (Number(slider.value) >= 1000) slider.value = 0;
    const began = performance.now() - (Number(slider.value) / 1000) * PLAY;
    byId('play').setAttribute('aria-pressed', 'true');
    const step = (now) => {
      slider.value = Math.min(1000, ((now - began) / PLAY) * 1000);
      this.#at();
      if (Number(slider.value) >= 1000) this.#pause();
      else this.#playing = requestAnimationFrame(step);
    };
    this.#playing = requestAnimationFrame(step);
  }

  #pause() {
    cancelAnimationFrame(this.#playing);
    this.#playing = null;
    byId('play').setAttribute('aria-pressed', 'false');
  }
}
