// The worker behind the page. What runs is ended with its worker; the next one is given the
// module that is compiled already.

const compiled = async () => {
  const answer = await fetch('zonelab.wasm.gz');
  if (!answer.ok) throw new Error(`zonelab.wasm.gz: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  // Some servers say that it is compressed, and then the browser has unpacked it.
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const stream = new Blob([bytes]).stream();
  const plain = isPacked ? stream.pipeThrough(new DecompressionStream('gzip')) : stream;
  return WebAssembly.compileStreaming(new Response(plain, { headers: { 'Content-Type': 'application/wasm' } }));
};

export class Engine {
  #module = compiled();
  #worker = null;
  #spare = null;
  #run = 0;
  #isBusy = false;
  #hear;

  // `hear` gets the messages of what was asked for last.
  constructor(hear) {
    this.#hear = hear;
    this.#spare = this.#start();
  }

  #start() {
    const worker = new Worker('worker.js', { type: 'module' });
    worker.onmessage = ({ data }) => {
      if (data.type === 'ready') return this.#hear(data);
      if (worker !== this.#worker || data.run !== this.#run) return undefined;
      if (data.type === 'done' || data.type === 'problems') this.#isBusy = false;
      return this.#hear(data);
    };
    worker.onerror = (event) => this.#hear({ type: 'problems', problems: [{ text: `The worker ended: ${event.message}` }] });
    this.#module.then(
      (module) => worker.postMessage({ type: 'begin', module }),
      (error) => this.#hear({ type: 'problems', problems: [{ text: String(error) }] }),
    );
    return worker;
  }

  // Asks for something; what runs is ended.
  ask(message) {
    if (this.#isBusy) this.stop();
    this.#worker ??= this.#spare ?? this.#start();
    this.#spare = null;
    this.#run += 1;
    this.#isBusy = message.type === 'run';
    this.#worker.postMessage({ ...message, run: this.#run });
  }

  stop() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#isBusy = false;
    // It starts while nobody waits for it.
    this.#spare ??= this.#start();
  }

  get isBusy() {
    return this.#isBusy;
  }
}
