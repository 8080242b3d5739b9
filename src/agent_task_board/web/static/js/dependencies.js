/** Which tasks and dependencies a picture shows: pure functions over the board's tasks, no DOM. */

import { adjacency, components, longestChain, reach, reduced } from "./layout.js";
import { isFinal } from "./status.js";

/** How many tasks are drawn at once. */
export const LIMIT = 250;

/** With more dependencies than so many per task only those are drawn that no chain of others implies. */
const DENSE = 3;

/**
 * Chooses what to draw: unfinished tasks along their dependencies first, the critical path before all, then finished ones.
 * @param {Map<string, object>} tasks
 * @param {{finished: boolean, limit?: number}} options
 * @returns {{ids: string[], edges: {from: string, to: string}[], drawn: {from: string, to: string}[], critical: string[], leftOut: number, isolated: number, hidden: number}}
 *   `edges`: all between the ids; `drawn`: those to be drawn; `critical`: the longest chain of unfinished tasks;
 *   `leftOut`: linked tasks beyond the limit; `isolated`: unfinished tasks without any dependency that could be drawn;
 *   `hidden`: finished tasks with dependencies that the switch hides
 */
export function choose(tasks, { finished, limit = LIMIT }) {
  const links = edgesAmong(tasks);
  const linked = new Set(endsOf(links));
  const isOpen = (id) => !isFinal(tasks.get(id));
  // What failed or was cancelled still stands in the way of whatever waits for it.
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

/** All dependencies between the tasks, `from` the one that comes first. */
export function edgesAmong(tasks) {
  const edges = [];
  for (const task of tasks.values()) {
    for (const id of task.blocked_by) if (tasks.has(id)) edges.push({ from: id, to: task.id });
  }
  return edges;
}

/** The ids of everything before and after a task along drawn edges, itself included. */
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
