// Layered drawing of a directed graph, after Sugiyama, Tagawa and Toda (1981): layers by the longest path, stand-ins for
// lines that pass through a layer, boxes ordered by their neighbours, then moved towards them. Pure: no DOM.

const GAP_X = 28;
const GAP_Y = 44;
/** Width that a line needs where it passes through a layer. */
const LANE = 14;
const SWEEPS = 12;

/** Split edges into those that run downwards and those that close a circle. */
function untwist(ids, edges) {
  const after = new Map(ids.map((id) => [id, []]));
  for (const [from, to] of edges) if (from !== to && after.has(from) && after.has(to)) after.get(from).push(to);
  const state = new Map();
  const down = [];
  const back = [];
  for (const root of ids) {
    if (state.has(root)) continue;
    const path = [[root, 0]];
    state.set(root, "open");
    while (path.length) {
      const top = path.at(-1);
      const [id, next] = top;
      if (next === after.get(id).length) {
        state.set(id, "done");
        path.pop();
        continue;
      }
      top[1] += 1;
      const to = after.get(id)[next];
      if (state.get(to) === "open") back.push([id, to]);
      else {
        down.push([id, to]);
        if (!state.has(to)) {
          state.set(to, "open");
          path.push([to, 0]);
        }
      }
    }
  }
  return { down, back };
}

/** Leave out an edge where a longer way leads there too; `order` is topological. */
function withoutShortcuts(order, edges) {
  const before = new Map(order.map((id) => [id, new Set()]));
  const into = new Map(order.map((id) => [id, []]));
  for (const [from, to] of edges) into.get(to).push(from);
  for (const id of order) {
    for (const from of into.get(id)) {
      before.get(id).add(from);
      for (const one of before.get(from)) before.get(id).add(one);
    }
  }
  return edges.filter(([from, to]) => !into.get(to).some((other) => other !== from && before.get(other).has(from)));
}

function layered(ids, edges) {
  const count = new Map(ids.map((id) => [id, 0]));
  const after = new Map(ids.map((id) => [id, []]));
  for (const [from, to] of edges) {
    count.set(to, count.get(to) + 1);
    after.get(from).push(to);
  }
  const depth = new Map(ids.map((id) => [id, 0]));
  const order = ids.filter((id) => count.get(id) === 0);
  for (let at = 0; at < order.length; at += 1) {
    for (const to of after.get(order[at])) {
      depth.set(to, Math.max(depth.get(to), depth.get(order[at]) + 1));
      count.set(to, count.get(to) - 1);
      if (count.get(to) === 0) order.push(to);
    }
  }
  return { depth, order };
}

function crossings(layers, place, below) {
  let sum = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((id) => (below.get(id) ?? []).map((to) => place.get(to)).sort((a, b) => a - b));
    for (let i = 0; i < ends.length; i += 1) for (let j = i + 1; j < ends.length; j += 1) if (ends[i] > ends[j]) sum += 1;
  }
  return sum;
}

/** Order each layer by the mean place of its neighbours, and keep the order with the fewest crossings. */
function untangle(layers, above, below) {
  const place = new Map();
  const note = () => layers.forEach((layer) => layer.forEach((id, index) => place.set(id, index)));
  note();
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers, place, below);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const down = sweep % 2 === 0;
    const near = down ? above : below;
    for (const layer of down ? layers : [...layers].reverse()) {
      const mean = new Map(layer.map((id) => {
        const found = near.get(id) ?? [];
        return [id, found.length ? found.reduce((sum, one) => sum + place.get(one), 0) / found.length : place.get(id)];
      }));
      layer.sort((a, b) => mean.get(a) - mean.get(b) || place.get(a) - place.get(b));
      layer.forEach((id, index) => place.set(id, index));
    }
    const now = crossings(layers, place, below);
    if (now < fewest) {
      fewest = now;
      best = layers.map((layer) => [...layer]);
    }
  }
  best.forEach((layer, index) => layers.splice(index, 1, layer));
}

/** Move the boxes of a layer towards where they want to be, without overlap and in their order. */
function settle(layer, boxes, wanted) {
  const gap = (a, b) => (boxes.get(a).width + boxes.get(b).width) / 2 + (boxes.get(a).lane || boxes.get(b).lane ? LANE : GAP_X);
  // Groups of boxes that touch move as one, to the mean of what they want: pool adjacent violators.
  const groups = [];
  for (const id of layer) {
    groups.push({ ids: [id], offsets: [0], sum: wanted.get(id), at: wanted.get(id) });
    while (groups.length > 1) {
      const right = groups.at(-1);
      const left = groups.at(-2);
      const shift = left.offsets.at(-1) + gap(left.ids.at(-1), right.ids[0]);
      if (left.at + shift <= right.at) break;
      groups.pop();
      left.ids.push(...right.ids);
      left.offsets.push(...right.offsets.map((one) => one + shift));
      left.sum += right.sum - shift * right.ids.length;
      left.at = left.sum / left.ids.length;
    }
  }
  for (const group of groups) group.ids.forEach((id, index) => { boxes.get(id).cx = group.at + group.offsets[index]; });
}

function place(layers, boxes, above, below) {
  for (const layer of layers) {
    let x = 0;
    for (const id of layer) {
      const box = boxes.get(id);
      box.cx = x + box.width / 2;
      x += box.width + GAP_X;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const near = sweep === SWEEPS - 1 ? null : down ? above : below;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((id) => {
        const found = near ? near.get(id) ?? [] : [...(above.get(id) ?? []), ...(below.get(id) ?? [])];
        return [id, found.length ? found.reduce((sum, one) => sum + boxes.get(one).cx, 0) / found.length : boxes.get(id).cx];
      }));
      settle(layer, boxes, wanted);
    }
  }
  const left = Math.min(...[...boxes.values()].map((box) => box.cx - box.width / 2));
  let y = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((id) => boxes.get(id).height));
    for (const id of layer) {
      const box = boxes.get(id);
      box.x = box.cx - box.width / 2 - left;
      box.cx -= left;
      box.y = box.lane ? y : y + (height - box.height) / 2;
      if (box.lane) box.height = height;
    }
    y += height + GAP_Y;
  }
  return y - GAP_Y;
}

/**
 * Arrange nodes `[{id, width, height}]` with edges `[[from, to]]`: `{nodes: {id: {x, y, width, height, layer}}, lines:
 * [{from, to, back, points: [[x, y], …]}], width, height}`. Lines run from the foot of one box to the head of another.
 */
export function arrange(nodes, edges) {
  const ids = nodes.map((node) => node.id);
  const { down, back } = untwist(ids, edges);
  const first = layered(ids, down);
  const kept = withoutShortcuts(first.order, down);
  const { depth } = layered(ids, kept);
  const boxes = new Map(nodes.map((node) => [node.id, { width: node.width, height: node.height }]));
  const layers = Array.from({ length: Math.max(0, ...depth.values()) + 1 }, () => []);
  for (const id of ids) layers[depth.get(id)].push(id);
  const above = new Map();
  const below = new Map();
  const join = (from, to) => {
    below.set(from, [...(below.get(from) ?? []), to]);
    above.set(to, [...(above.get(to) ?? []), from]);
  };
  const chains = kept.map(([from, to]) => {
    const chain = [from];
    for (let layer = depth.get(from) + 1; layer < depth.get(to); layer += 1) {
      const id = `${from}\u0000${to}\u0000${layer}`;
      boxes.set(id, { width: LANE, height: 0, lane: true });
      layers[layer].push(id);
      join(chain.at(-1), id);
      chain.push(id);
    }
    join(chain.at(-1), to);
    return [...chain, to];
  });
  untangle(layers, above, below);
  const height = nodes.length ? place(layers, boxes, above, below) : 0;
  const lines = chains.map((chain) => ({
    from: chain[0], to: chain.at(-1), back: false,
    points: chain.flatMap((id, index) => {
      const box = boxes.get(id);
      const points = [];
      if (index > 0) points.push([box.cx, box.y]);
      if (index < chain.length - 1) points.push([box.cx, box.y + box.height]);
      return points;
    }),
  }));
  const width = Math.max(0, ...[...boxes.values()].map((box) => box.x + box.width));
  for (const [from, to] of back) {
    const one = boxes.get(from);
    const other = boxes.get(to);
    lines.push({ from, to, back: true, points: [[one.x + one.width, one.y + one.height / 2], [other.x + other.width, other.y + other.height / 2]] });
  }
  const placed = Object.fromEntries(ids.map((id) => {
    const { x, y, width: wide, height: high } = boxes.get(id);
    return [id, { x, y, width: wide, height: high, layer: depth.get(id) }];
  }));
  return { nodes: placed, lines, width, height };
}

/** A smooth line through the points of `arrange`, as the `d` of a path. */
export function curve({ points, back }) {
  const [[x0, y0], ...rest] = points;
  if (back) {
    const [[x1, y1]] = rest;
    const out = Math.max(x0, x1) + 26;
    return `M${x0},${y0}C${out},${y0} ${out},${y1} ${x1 + 4},${y1}`;
  }
  let d = `M${x0.toFixed(1)},${y0.toFixed(1)}`;
  let [x, y] = [x0, y0];
  rest.forEach(([nx, ny], index) => {
    const end = index === rest.length - 1 ? ny - 5 : ny;
    if (Math.abs(nx - x) < 0.5) d += `L${nx.toFixed(1)},${end.toFixed(1)}`;
    else {
      const middle = (y + ny) / 2;
      d += `C${x.toFixed(1)},${middle.toFixed(1)} ${nx.toFixed(1)},${middle.toFixed(1)} ${nx.toFixed(1)},${end.toFixed(1)}`;
    }
    [x, y] = [nx, ny];
  });
  return d;
}
