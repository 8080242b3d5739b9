/**
 * Layered layout of a directed acyclic graph: pure functions, no DOM.
 * Layers run from left to right along the edges; long edges pass through dummy nodes.
 */

const SWEEPS = 8;

/** Maximum number of dummy nodes per part. Further edges run straight and do not influence the order. */
const MAX_DUMMIES = 6000;

/**
 * Places nodes and edges. Each connected part is laid out on its own; the parts are then packed into rows.
 * @param {string[]} ids
 * @param {{from: string, to: string}[]} edges `from` is left of `to`; both must be among the ids
 * @param {{width: number, height: number, gapX?: number, gapY?: number, aspect?: number}} size of every node; target aspect ratio
 * @returns {{nodes: Map<string, {x: number, y: number, layer: number}>, edges: {from: string, to: string, points: {x: number, y: number}[]}[], width: number, height: number}}
 *   `x`, `y` is a node's upper left corner; `points` run from the right edge of one node to the left edge of the other
 */
export function layout(ids, edges, { width, height, gapX = 64, gapY = 16, aspect = 1.6 }) {
  const size = { width, height, gapX, gapY };
  const parts = components(ids, edges).map((part) => place(part.ids, part.edges, size));
  return pack(parts, { gap: gapY * 2, aspect });
}

/** Splits a graph into its connected parts, the largest first. */
export function components(ids, edges) {
  const part = new Map();
  const near = adjacency(ids, edges);
  const found = [];
  for (const id of ids) {
    if (part.has(id)) continue;
    const members = reach([id], (at) => [...near.before.get(at), ...near.after.get(at)]);
    for (const member of members) part.set(member, found.length);
    found.push({ ids: [], edges: [] });
  }
  for (const id of ids) found[part.get(id)].ids.push(id);
  for (const edge of edges) found[part.get(edge.from)].edges.push(edge);
  return found.sort((one, other) => other.ids.length - one.ids.length);
}

/** The nodes reachable from `start`, including `start`, nearest first, at most `limit`. */
export function reach(start, next, limit = Infinity) {
  const seen = new Set(start);
  for (const id of seen) {
    if (seen.size >= limit) break;
    for (const other of next(id)) {
      if (seen.size < limit) seen.add(other);
    }
  }
  return seen;
}

/** The neighbours of every node: `before` it and `after` it. */
export function adjacency(ids, edges) {
  const before = new Map(ids.map((id) => [id, []]));
  const after = new Map(ids.map((id) => [id, []]));
  for (const { from, to } of edges) {
    after.get(from).push(to);
    before.get(to).push(from);
  }
  return { before, after };
}

/** The nodes in topological order; nodes on or after a cycle are left out. */
export function topological(ids, { before, after }) {
  const open = new Map(ids.map((id) => [id, before.get(id).length]));
  const order = ids.filter((id) => open.get(id) === 0);
  for (const id of order) {
    for (const next of after.get(id)) {
      open.set(next, open.get(next) - 1);
      if (open.get(next) === 0) order.push(next);
    }
  }
  return order;
}

/** The longest chain of nodes, from its first to its last. */
export function longestChain(ids, edges) {
  const near = adjacency(ids, edges);
  const best = new Map();
  let last = null;
  for (const id of topological(ids, near)) {
    let previous = null;
    for (const other of near.before.get(id)) {
      if (previous === null || best.get(other).length > best.get(previous).length) previous = other;
    }
    best.set(id, { length: previous === null ? 1 : best.get(previous).length + 1, previous });
    if (last === null || best.get(id).length > best.get(last).length) last = id;
  }
  const chain = [];
  for (let at = last; at !== null; at = best.get(at).previous) chain.push(at);
  return chain.reverse();
}

/** The edges that no longer path implies (the transitive reduction). */
export function reduced(ids, edges) {
  const near = adjacency(ids, edges);
  const order = topological(ids, near);
  const place = positions(order);
  const reached = new Map();
  const kept = new Set();
  for (const id of order.toReversed()) {
    let bits = 0n;
    for (const next of near.after.get(id).sort((one, other) => place.get(one) - place.get(other))) {
      const bit = 1n << BigInt(place.get(next));
      if (!(bits & bit)) kept.add(`${id} ${next}`);
      bits |= bit | reached.get(next);
    }
    reached.set(id, bits);
  }
  return edges.filter(({ from, to }) => kept.has(`${from} ${to}`));
}

/** Lays out one connected part. */
function place(ids, edges, size) {
  const { rank, order } = ranks(ids, edges);
  const { layers, chains, before, after } = withDummies(order, edges, rank);
  reduceCrossings(layers, before, after);
  const y = heights(layers, before, after, size);
  return measure(ids, chains, rank, y, size);
}

/** The layer of each node: the length of the longest path to it. A node without predecessors moves next to its successors. */
function ranks(ids, edges) {
  const near = adjacency(ids, edges);
  const order = topological(ids, near);
  const rank = new Map(order.map((id) => [id, 0]));
  for (const id of order) {
    for (const next of near.after.get(id)) rank.set(next, Math.max(rank.get(next), rank.get(id) + 1));
  }
  for (const id of order) {
    const next = near.after.get(id);
    if (near.before.get(id).length === 0 && next.length) rank.set(id, Math.min(...next.map((other) => rank.get(other))) - 1);
  }
  return { rank, order };
}

/** Layers of nodes. Edges that span several layers get dummy nodes (objects) in between. */
function withDummies(order, edges, rank) {
  const layers = [];
  const before = new Map();
  const after = new Map();
  const addTo = (item, layer) => {
    (layers[layer] ??= []).push(item);
    before.set(item, []);
    after.set(item, []);
  };
  for (const id of order) addTo(id, rank.get(id));
  const chains = [];
  let room = MAX_DUMMIES;
  for (const { from, to } of edges) {
    if (!rank.has(from) || !rank.has(to)) continue;
    const between = rank.get(to) - rank.get(from) - 1;
    if (between > room) {
      chains.push([from, to]);
      continue;
    }
    room -= between;
    const chain = [from];
    for (let layer = rank.get(from) + 1; layer < rank.get(to); layer += 1) {
      const dummy = { layer };
      addTo(dummy, layer);
      chain.push(dummy);
    }
    chain.push(to);
    for (let at = 1; at < chain.length; at += 1) {
      after.get(chain[at - 1]).push(chain[at]);
      before.get(chain[at]).push(chain[at - 1]);
    }
    chains.push(chain);
  }
  return { layers, chains, before, after };
}

/** Orders each layer by the mean position of its neighbours, in alternating sweeps, and keeps the order with the fewest crossings. */
function reduceCrossings(layers, before, after) {
  let best = layers.map((layer) => [...layer]);
  let fewest = Infinity;
  for (let sweep = 0; sweep <= SWEEPS && fewest > 0; sweep += 1) {
    const crossings = countCrossings(layers, after);
    if (crossings < fewest) {
      fewest = crossings;
      best = layers.map((layer) => [...layer]);
    }
    const down = sweep % 2 === 0;
    const last = layers.length - 1;
    for (let step = 1; step <= last; step += 1) {
      const at = down ? step : last - step;
      const place = positions(layers[down ? at - 1 : at + 1]);
      const near = down ? before : after;
      const wanted = new Map(layers[at].map((item, index) => [item, mean(near.get(item).map((other) => place.get(other)), index)]));
      layers[at].sort((one, other) => wanted.get(one) - wanted.get(other));
    }
  }
  best.forEach((layer, index) => {
    layers[index] = layer;
  });
}

function countCrossings(layers, after) {
  let count = 0;
  for (let at = 0; at + 1 < layers.length; at += 1) {
    const place = positions(layers[at + 1]);
    const ends = layers[at].flatMap((item) => after.get(item).map((other) => place.get(other)).sort((one, other) => one - other));
    count += inversions(ends, layers[at + 1].length);
  }
  return count;
}

/** The number of inverted pairs, counted with a Fenwick tree. */
function inversions(values, size) {
  const sums = new Int32Array(size + 1);
  let count = 0;
  values.forEach((value, seen) => {
    let notLarger = 0;
    for (let at = value + 1; at > 0; at -= at & -at) notLarger += sums[at];
    count += seen - notLarger;
    for (let at = value + 1; at <= size; at += at & -at) sums[at] += 1;
  });
  return count;
}

/** The vertical centre of each item: near its neighbours, in the layer's order, without overlap. */
function heights(layers, before, after, { height, gapY }) {
  const tall = (item) => (typeof item === "string" ? height + gapY : gapY);
  const y = new Map();
  for (const layer of layers) {
    let at = 0;
    for (const item of layer) {
      y.set(item, at + tall(item) / 2);
      at += tall(item);
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (let step = 0; step < layers.length; step += 1) {
      const layer = layers[down ? step : layers.length - 1 - step];
      const wanted = layer.map((item) => {
        const near = sweep < SWEEPS - 2 ? (down ? before : after).get(item) : [...before.get(item), ...after.get(item)];
        return mean(near.map((other) => y.get(other)), y.get(item));
      });
      resolveOverlaps(layer, wanted, tall).forEach((value, index) => y.set(layer[index], value));
    }
  }
  return y;
}

/**
 * The positions closest to the wanted ones (least squares) that keep the order and the distances.
 * Neighbours that would overlap merge into a block, placed at the mean of its members' wanted positions.
 */
function resolveOverlaps(layer, wanted, tall) {
  const offsets = [0];
  for (let at = 1; at < layer.length; at += 1) offsets.push(offsets[at - 1] + (tall(layer[at - 1]) + tall(layer[at])) / 2);
  const blocks = [];
  layer.forEach((item, index) => {
    // Dummies weigh more, so that long edges run straight.
    const weight = typeof item === "string" ? 1 : 4;
    let block = { sum: (wanted[index] - offsets[index]) * weight, weight, count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight >= block.sum / block.weight) {
      const above = blocks.pop();
      block = { sum: above.sum + block.sum, weight: above.weight + block.weight, count: above.count + block.count };
    }
    blocks.push(block);
  });
  return blocks.flatMap((block) => Array(block.count).fill(block.sum / block.weight)).map((value, index) => value + offsets[index]);
}

function measure(ids, chains, rank, y, { width, height, gapX }) {
  const step = width + gapX;
  const placed = ids.filter((id) => rank.has(id));
  const values = [...y].map(([item, middle]) => [item, middle]);
  const top = Math.min(...values.map(([item, middle]) => middle - (typeof item === "string" ? height / 2 : 0)));
  const bottom = Math.max(...values.map(([item, middle]) => middle + (typeof item === "string" ? height / 2 : 0)));
  const nodes = new Map(placed.map((id) => [id, { x: rank.get(id) * step, y: y.get(id) - height / 2 - top, layer: rank.get(id) }]));
  const edges = chains.map((chain) => ({
    from: chain[0],
    to: chain.at(-1),
    points: chain.flatMap((item, index) => {
      const middle = y.get(item) - top;
      if (index === 0) return [{ x: rank.get(item) * step + width, y: middle }];
      if (index === chain.length - 1) return [{ x: rank.get(item) * step, y: middle }];
      return [{ x: item.layer * step, y: middle }, { x: item.layer * step + width, y: middle }];
    }),
  }));
  const columns = Math.max(0, ...placed.map((id) => rank.get(id))) + 1;
  return { nodes, edges, width: columns * step - gapX, height: bottom - top };
}

/** Packs the parts into rows, so that the whole has about the target aspect ratio. */
function pack(parts, { gap, aspect }) {
  const area = parts.reduce((sum, part) => sum + (part.width + gap) * (part.height + gap), 0);
  const room = Math.max(Math.sqrt(area * aspect), ...parts.map((part) => part.width), 0);
  const whole = { nodes: new Map(), edges: [], width: 0, height: 0 };
  let x = 0;
  let y = 0;
  let tallest = 0;
  for (const part of parts) {
    if (x > 0 && x + part.width > room) {
      x = 0;
      y += tallest + gap;
      tallest = 0;
    }
    for (const [id, node] of part.nodes) whole.nodes.set(id, { ...node, x: node.x + x, y: node.y + y });
    for (const edge of part.edges) {
      whole.edges.push({ ...edge, points: edge.points.map((point) => ({ x: point.x + x, y: point.y + y })) });
    }
    whole.width = Math.max(whole.width, x + part.width);
    whole.height = Math.max(whole.height, y + part.height);
    tallest = Math.max(tallest, part.height);
    x += part.width + gap * 2;
  }
  return whole;
}

function positions(layer) {
  return new Map(layer.map((item, index) => [item, index]));
}

function mean(values, otherwise) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : otherwise;
}
