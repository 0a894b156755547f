// Runs an experiment point by point, beside the page. Whoever wants it to stop ends the worker.

import init, { Playground, profile_text, starting_points } from './zonelab.js';

let bench = null;
let begin;
// Messages may come before the module is there.
const begun = new Promise((done) => {
  begin = done;
});

// Lets messages in between two points.
const turn = () => new Promise((done) => setTimeout(done, 0));

const tried = (run, work) => {
  try {
    work();
    return true;
  } catch (error) {
    const said = typeof error === 'string' ? JSON.parse(error) : { problems: [{ text: `zonelab broke: ${error}` }] };
    postMessage({ type: 'problems', run, problems: said.problems });
    return false;
  }
};

const open = (run, request) => {
  bench?.free();
  bench = null;
  return tried(run, () => {
    bench = new Playground(JSON.stringify(request));
    const overview = JSON.parse(bench.overview());
    postMessage({ type: 'opened', run, overview, profile: profile_text(overview.profile) ?? null });
  });
};

const point = (run, index, window, isAgain) =>
  tried(run, () => {
    const measured = JSON.parse(bench.run(index, window === null ? undefined : JSON.stringify(window)));
    const figure = isAgain ? null : bench.figure();
    postMessage({ type: 'point', run, isAgain, figure, ...measured });
  });

const all = async (run, points, window) => {
  for (let index = 0; index < points; index += 1) {
    if (!point(run, index, window, false)) return;
    await turn();
  }
  tried(run, () => postMessage({ type: 'done', run, files: JSON.parse(bench.files()) }));
};

onmessage = async ({ data }) => {
  const { type, run } = data;
  if (type === 'begin') {
    await init({ module_or_path: data.module });
    begin();
    postMessage({ type: 'ready', run, ...JSON.parse(starting_points()) });
    return;
  }
  await begun;
  if (type === 'run') {
    if (open(run, data.request)) await all(run, JSON.parse(bench.overview()).points.length, data.window);
  } else if (type === 'look' && bench !== null) {
    point(run, data.index, data.window, true);
  }
};
