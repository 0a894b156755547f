// The translation layer, of a server that has one.

const LAYER_SECONDS = 10;
const layerSection = (past) => {
  const list = el('dl', { class: 'facts wide', id: 'layer' });
  const fact = (name, value) => el('div', {}, el('dt', {}, name), el('dd', {}, value));
  const traffic = lineChart('Traffic of the layer over time', ['written by hosts', 'moved by the collector', 'metadata'], [0, 1, 2],
    { name: 'written', unit: 'MiB/s' }, (value) => `${number(value)} MiB/s`);
  const collected = lineChart('Collected zones over time', ['collected zones'], [3],
    { name: 'zones', unit: '1/s' }, (value) => `${number(value)} per second`);
  const written = ({ layer }) => [layer.host_bytes, layer.moved_bytes, layer.footer_bytes + layer.journal_bytes + layer.image_bytes];
  // Bytes written by bytes that hosts wrote.
  const amplification = (parts) => (parts[0] > 0 ? number(sum(parts) / parts[0]) : '–');
  return {
    node: el('section', {}, el('h2', {}, 'Translation layer'), list,
      el('div', { class: 'parts' }, el('div', { id: 'layer-traffic' }, traffic.nodes), el('div', { id: 'collected' }, collected.nodes))),
    update: (state) => {
      const { layer } = state;
      const { now, then } = past.span(LAYER_SECONDS);
      const lately = written(now).map((value, of) => Math.max(0, value - written(then)[of]));
      const condition = layer.failure ?? (layer.is_well ? 'well' : 'being mounted');
      list.replaceChildren(
        fact('state', condition),
        fact('size', bytes(layer.size_bytes)),
        fact('free zones', `${count(layer.free_zones)} of ${count(layer.data_zones)}`),
        fact('zones being written', count(layer.active_zones)),
        fact('write amplification', amplification(written(state))),
        fact(`in the last ${LAYER_SECONDS} s`, amplification(lately)),
        fact('collected zones', count(layer.collected_zones)),
        fact('deallocated', bytes(layer.trimmed_bytes)),
        fact('commits', count(layer.commits)),
        fact('waits for the collector', count(layer.stalls)),
        fact('map in memory', bytes(layer.map_bytes)),
        ...(layer.map_hit_rate === null ? [] : [fact('of the map found there', `${(100 * layer.map_hit_rate).toFixed(1)} %`)]),
        fact('mounts', count(layer.mounts)),
      );
      traffic.update(rates(past.all(), written, 1e9 / 2 ** 20));
      collected.update(rates(past.all(), (sample) => [sample.layer.collected_zones], 1e9));
    },
  };
};
