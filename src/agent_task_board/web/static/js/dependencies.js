/** Which tasks and dependencies the graph shows: pure functions over the board's tasks, no DOM. */

import { adjacency, components, longestChain, reach, reduced } from "./layout.js";
import { isFinal } from "./status.js";

/** How many tasks are drawn at once. */
export const LIMIT = 250;

/** With more dependencies per task than this, those implied by a chain of others are not drawn. */
const DENSE = 3;

/**
 * Chooses what to draw: the critical path first, then other unfinished tasks along their dependencies, then finished ones.
 * @param {Map<string, object>} tasks
 * @param {{finished: boolean, limit?: number}} options
 * @returns {{ids: string[], edges: {from: string, to: string}[], drawn: {from: string, to: string}[], critical: string[], leftOut: number, isolated: number, hidden: number}}
 *   `edges`: all edges between the ids; `drawn`: the edges to draw; `critical`: the longest chain of unfinished tasks;
 *   `leftOut`: number of linked tasks beyond the limit; `isolated`: number of unfinished tasks without drawable dependencies;
 *   `hidden`: number of finished tasks with dependencies that `finished: false` hides
 */
export function choose(tasks, { finished, limit = LIMIT }) {
  const links = edgesAmong(tasks);
  const linked = new Set(endsOf(links));
  const isOpen = (id) => !isFinal(tasks.get(id));
  // A failed or cancelled task still blocks its dependents.
  const openLinks = links.filter(({ from, to }) => isOpen(to) && tasks.get(from).status !== "done");
  const openIds = endsOf(openLinks);
  const chained = openLinks.filter(({ from }) => isOpen(from));
  const critical = longestChain(endsOf(chained), chained);

  const wanted = new Set(reachable(critical, openIds, openLinks, limit));
  for (const part of components(openIds, openLinks)) {
    if (wanted.size >= limit) break;
    if (!wanted.has(part.ids[0])) for (const id of reachable([part.ids[0]], part.ids, part.edges, limit - wanted.size)) wanted.add(id);
  }
  const candidates = finished ? linked : new Set(openIds);
  if (finished && wanted.size < limit) {
    const all = [...linked];
    for (const id of reachable([...wanted], all, links, limit)) wanted.add(id);
    for (const id of all) if (wanted.size < limit) wanted.add(id);
  }
  const ids = [...wanted];
  const edges = links.filter(({ from, to }) => wanted.has(from) && wanted.has(to));
  return {
    ids,
    edges,
    drawn: edges.length > DENSE * ids.length ? reduced(ids, edges) : edges,
    critical,
    leftOut: candidates.size - wanted.size,
    isolated: [...tasks.keys()].filter((id) => isOpen(id) && !candidates.has(id)).length,
    hidden: finished ? 0 : [...linked].filter((id) => !candidates.has(id) && !isOpen(id)).length,
  };
}

/** All dependencies between the tasks; `to` depends on `from`. */
export function edgesAmong(tasks) {
  const edges = [];
  for (const task of tasks.values()) {
    for (const id of task.blocked_by) if (tasks.has(id)) edges.push({ from: id, to: task.id });
  }
  return edges;
}

/** The ids of all tasks before and after a task along the edges, including itself. */
export function lineage(id, ids, edges) {
  const { before, after } = adjacency(ids, edges);
  return new Set([...reach([id], (at) => before.get(at)), ...reach([id], (at) => after.get(at))]);
}

function endsOf(edges) {
  return [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
}

function reachable(start, ids, edges, limit) {
  const { before, after } = adjacency(ids, edges);
  const known = start.filter((id) => before.has(id)).slice(0, limit);
  return reach(known, (at) => [...before.get(at), ...after.get(at)], limit);
}
