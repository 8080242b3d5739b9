/** The dependency graph, drawn from left to right. */

import { choose, LIMIT, lineage } from "../dependencies.js";
import { fill, h, icon, svg } from "../dom.js";
import { isFiltered, predicate } from "../filters.js";
import { draw, edgePath, nodeLink, SIZE } from "../graph-node.js";
import { shortcut } from "../keyboard.js";
import { adjacency, layout } from "../layout.js";
import { PanZoom } from "../pan-zoom.js";
import { router } from "../router.js";
import { search } from "../search.js";
import { statusOf } from "../status.js";
import { remember, remembered, store } from "../store.js";

const STEP = 80;
const ZOOM = 1.25;

/** After a redraw, wait this many times its duration, so that a slow graph does not block the page. */
const REST_FACTOR = 3;
const READABLE = 0.7;
const READABLE_ON_PHONE = 0.85;
const LEGEND = ["queued", "blocked", "running", "review", "failed", "done"];

export class Graph extends HTMLElement {
  #finished = remembered("atb-graph-finished") === "1";
  #asList = remembered("atb-graph-list") === "1";
  #chosen = null;
  #placed = null;
  #near = null;
  #shape = "";
  #links = new Map();
  #drawn = new Map();
  #current = null;
  #traced = null;
  #timer = 0;
  #restTime = 0;

  #edges = svg("g", { class: "graph-edges", "aria-hidden": "true" });
  #nodes = svg("g", { class: "graph-nodes" });
  #stage = svg("g", null, this.#edges, this.#nodes);
  #frame = svg("svg", { class: "graph-frame", role: "group", tabindex: "0", "aria-label": "Dependency graph", "aria-describedby": "graph-hint" }, this.#stage);
  #summary = h("p", { class: "graph-summary", role: "status" });
  #list = h("div", { class: "graph-list", hidden: true });
  #empty = h("div", { class: "view-empty", hidden: true });
  #zoomTools = h("div", { class: "graph-zoom", role: "group", "aria-label": "Zoom" });
  #view = new PanZoom(this.#frame, this.#stage);

  connectedCallback() {
    if (this.childElementCount) return;
    this.append(this.#tools(), h("div", { class: "graph-canvas" }, this.#frame, this.#zoomTools, this.#empty), this.#list, legend());
    this.#frame.addEventListener("keydown", (event) => this.#key(event));
    this.#nodes.addEventListener("click", (event) => this.#open(event));
    this.#nodes.addEventListener("pointerover", (event) => this.#trace(idOf(event)));
    this.#nodes.addEventListener("pointerleave", () => this.#trace(idOf({ target: document.activeElement })));
    // Not on the SVG group: Chromium makes SVG elements with focus listeners focusable.
    this.addEventListener("focusin", (event) => this.#focused(idOf(event)));
    this.addEventListener("focusout", () => this.#trace(null));
    const inView = (act) => () => (router.state.view === "graph" ? void act() : false);
    shortcut("+", "Graph: zoom in", inView(() => this.#view.zoom(ZOOM)), { aliases: ["="] });
    shortcut("-", "Graph: zoom out", inView(() => this.#view.zoom(1 / ZOOM)));
    shortcut("0", "Graph: fit to view", inView(() => this.#view.fit()));
    router.addEventListener("route", () => this.#scheduleRender());
    search.addEventListener("found", () => this.#scheduleRender());
    store.addEventListener("tasks", () => this.#scheduleRender(Math.max(1, this.#restTime)));
    this.#scheduleRender();
  }

  #tools() {
    const finished = h("input", { type: "checkbox", checked: this.#finished });
    finished.addEventListener("change", () => {
      this.#finished = finished.checked;
      remember("atb-graph-finished", this.#finished ? "1" : "");
      this.#scheduleRender();
    });
    const forms = ["Graph", "List"].map((label) => h("button", { class: "switcher-item", type: "button" }, label));
    const choose = (asList) => {
      this.#asList = asList;
      remember("atb-graph-list", asList ? "1" : "");
      forms.forEach((button, index) => button.setAttribute("aria-pressed", String((index === 1) === asList)));
      this.#scheduleRender();
    };
    forms.forEach((button, index) => button.addEventListener("click", () => choose(index === 1)));
    choose(this.#asList);
    const tool = (name, label, act) => h("button", { class: "button button-icon", type: "button", "aria-label": label, title: label, on: { click: act } }, icon(name));
    this.#zoomTools.append(
      tool("zoom-in", "Zoom in (+)", () => this.#view.zoom(ZOOM)),
      tool("zoom-out", "Zoom out (−)", () => this.#view.zoom(1 / ZOOM)),
      tool("fit", "Fit to view (0)", () => this.#view.fit()),
    );
    const hint = "Use the arrow keys to pan, plus and minus to zoom, and 0 to fit everything. Press Tab to reach the tasks: there, the arrow keys follow dependencies and Enter opens a task.";
    return h("div", { class: "graph-tools" },
      h("h2", { class: "view-title graph-heading" }, "Dependencies"),
      this.#summary,
      h("label", { class: "graph-switch" }, finished, "Show finished tasks"),
      h("div", { class: "switcher", role: "group", "aria-label": "View as" }, forms),
      h("p", { class: "visually-hidden", id: "graph-hint" }, hint));
  }

  /** Draws in the next frame; after a board change, waits `wait` milliseconds first. */
  #scheduleRender(wait = 0) {
    if (router.state.view !== "graph" || (wait && this.#timer)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => requestAnimationFrame(() => {
      this.#timer = 0;
      const started = performance.now();
      if (router.state.view === "graph" && store.loaded) this.#render();
      this.#restTime = (performance.now() - started) * REST_FACTOR;
    }), wait);
  }

  #render() {
    this.#chosen = choose(store.tasks, { finished: this.#finished });
    const { ids, edges } = this.#chosen;
    this.#near = adjacency(ids, edges);
    this.#showSummary();
    const empty = ids.length === 0;
    this.#empty.hidden = !empty;
    this.#zoomTools.hidden = empty;
    this.#frame.parentElement.hidden = this.#asList && !empty;
    this.#list.hidden = !this.#asList || empty;
    if (empty) this.#emptyText();
    if (this.#asList) this.#listTasks();
    else this.#drawAll();
  }

  #drawAll() {
    const { ids, drawn } = this.#chosen;
    const shape = `${ids.join()} ${drawn.map(({ from, to }) => from + to).join()}`;
    const first = !this.#shape;
    const rebuilt = shape !== this.#shape;
    if (rebuilt) {
      const focused = idOf({ target: document.activeElement });
      const before = new Set(this.#links.keys());
      this.#place();
      this.#shape = shape;
      if (focused) this.#links.get(focused)?.focus({ preventScroll: true });
      const kept = ids.filter((id) => before.has(id)).length;
      if (first || this.#view.isFitted || kept < ids.length / 2) this.#showInitially();
    }
    const critical = new Set(this.#chosen.critical);
    const passes = isFiltered() ? predicate() : () => true;
    for (const [id, link] of this.#links) {
      const task = store.task(id);
      const waitsFor = task.blocked_by.filter((other) => store.task(other)?.status !== "done").length;
      const state = { task, critical: critical.has(id), faded: !passes(task), waitsFor, neededBy: store.dependents(id).length };
      if (same(this.#drawn.get(link), state)) continue;
      draw(link, task, state);
      this.#drawn.set(link, state);
    }
    this.#markEdges(critical);
    this.#trace(this.#traced);
  }

  /** Computes the layout and creates nodes and edges in reading order: left to right, top to bottom. */
  #place() {
    const { ids, drawn } = this.#chosen;
    this.#placed = layout(ids, drawn, { ...SIZE, aspect: this.#frame.clientWidth / Math.max(1, this.#frame.clientHeight) || 1.6 });
    const { nodes, width, height } = this.#placed;
    this.#view.content = { width: Math.max(1, width), height: Math.max(1, height) };
    const order = [...nodes].sort(([, one], [, other]) => one.x - other.x || one.y - other.y);
    const links = new Map();
    for (const [id, { x, y }] of order) {
      const link = this.#links.get(id) ?? nodeLink(store.task(id));
      link.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      links.set(id, link);
    }
    this.#links = links;
    this.#drawn = new Map([...links.values()].map((link) => [link, this.#drawn.get(link)]));
    fill(this.#nodes, ...links.values());
    fill(this.#edges, this.#placed.edges.map(({ from, to, points }) => svg("path", { class: "graph-edge", d: edgePath(points), dataset: { from, to } })));
    if (!links.has(this.#current)) this.#current = this.#chosen.critical[0] ?? order[0]?.[0] ?? null;
    for (const [id, link] of links) link.setAttribute("tabindex", id === this.#current ? "0" : "-1");
  }

  #markEdges(critical) {
    const chain = this.#chosen.critical;
    for (const path of this.#edges.children) {
      const { from, to } = path.dataset;
      path.classList.toggle("is-critical", critical.has(from) && chain[chain.indexOf(from) + 1] === to);
      path.classList.toggle("is-finished", store.task(from)?.status === "done");
      path.classList.toggle("is-faded", this.#isFaded(from) || this.#isFaded(to));
    }
  }

  #isFaded(id) {
    return this.#drawn.get(this.#links.get(id))?.faded ?? false;
  }

  /** The initial view: everything if it stays readable, otherwise the start of the critical path. */
  #showInitially() {
    this.#view.fit({ minScale: this.#frame.clientWidth < 600 ? READABLE_ON_PHONE : READABLE });
    const node = this.#placed.nodes.get(this.#current);
    if (node) this.#view.reveal({ ...node, ...SIZE });
  }

  #showSummary() {
    const { ids, edges, drawn, critical, leftOut, isolated, hidden } = this.#chosen;
    const parts = [`${count(ids.length, "task")} shown`];
    if (critical.length) parts.push(`critical path: ${count(critical.length, "task")}`);
    if (leftOut) parts.push(`${leftOut.toLocaleString("en")} more not shown (limit ${LIMIT})`);
    if (drawn.length < edges.length) parts.push(`${count(edges.length - drawn.length, "implied line")} not shown`);
    if (isolated) parts.push(`${count(isolated, "task")} without dependencies not shown`);
    if (hidden) parts.push(`${count(hidden, "finished task")} hidden`);
    const text = parts.join(" · ");
    if (this.#summary.textContent !== text) this.#summary.textContent = text;
  }

  #emptyText() {
    const { hidden } = this.#chosen;
    fill(this.#empty, icon("graph"), h("p", null, "No unfinished task depends on another one."),
      h("p", { class: "hint" }, hidden ? "Turn on “Show finished tasks” to see earlier dependencies." : "You can set dependencies when you add or edit a task."));
  }

  /** Lists the same tasks in a table. */
  #listTasks() {
    const rows = this.#chosen.ids.map((id) => {
      const task = store.task(id);
      const status = statusOf(task);
      const links = (others) => (others.length ? h("ul", null, others.map((other) => h("li", null, link(other)))) : "–");
      const critical = this.#chosen.critical.includes(id) ? h("span", { class: "chip" }, "Critical path") : null;
      return h("tr", null,
        h("th", { scope: "row" }, link(id), critical),
        h("td", null, h("span", { class: `chip chip-status ${status.css}` }, icon(status.icon), status.label)),
        h("td", null, links(this.#near.before.get(id))),
        h("td", null, links(this.#near.after.get(id))));
    });
    const heads = ["Task", "Status", "Depends on", "Needed by"].map((text) => h("th", { scope: "col" }, text));
    fill(this.#list, h("table", { class: "data-table" }, h("caption", { class: "visually-hidden" }, "Dependencies"), h("thead", null, h("tr", null, heads)), h("tbody", null, rows)));
  }

  /** Highlights a task with everything before and after it; null removes the highlight. */
  #trace(id) {
    this.#traced = id;
    const line = id && this.#links.has(id) ? lineage(id, this.#chosen.ids, this.#chosen.edges) : null;
    this.#frame.classList.toggle("is-tracing", line !== null);
    for (const [other, link] of this.#links) link.classList.toggle("is-traced", line?.has(other) ?? false);
    for (const path of this.#edges.children) {
      path.classList.toggle("is-traced", (line?.has(path.dataset.from) && line.has(path.dataset.to)) ?? false);
    }
  }

  #focused(id) {
    if (!this.#links.has(id)) return;
    this.#links.get(this.#current)?.setAttribute("tabindex", "-1");
    this.#links.get(id).setAttribute("tabindex", "0");
    this.#current = id;
    this.#trace(id);
    this.#view.reveal({ ...this.#placed.nodes.get(id), ...SIZE });
  }

  #open(event) {
    const id = idOf(event);
    if (!id || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    router.go({ task: id });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = idOf(event);
    const pans = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (!(event.key in pans)) return;
    if (id) this.#links.get(this.#neighbour(id, event.key))?.focus({ preventScroll: true });
    else this.#view.pan(...pans[event.key]);
    event.preventDefault();
  }

  /** The next task for an arrow key. Left: a dependency; right: a dependent; up and down: the same column. */
  #neighbour(id, key) {
    const { nodes } = this.#placed;
    const here = nodes.get(id);
    let others = [...nodes.keys()].filter((other) => nodes.get(other).x === here.x);
    if (key === "ArrowLeft") others = this.#near.before.get(id);
    else if (key === "ArrowRight") others = this.#near.after.get(id);
    else others = others.filter((other) => (key === "ArrowUp" ? nodes.get(other).y < here.y : nodes.get(other).y > here.y));
    const far = (other) => Math.abs(nodes.get(other).y - here.y) + Math.abs(nodes.get(other).x - here.x);
    return others.reduce((best, other) => (best === null || far(other) < far(best) ? other : best), null);
  }
}

function legend() {
  const entries = LEGEND.map((status) => {
    const { label, icon: name, css } = statusOf(status === "blocked" ? { status: "queued", blocked: true } : { status });
    return h("li", { class: css }, h("span", { class: "legend-mark" }, icon(name)), label);
  });
  return h("ul", { class: "graph-legend", "aria-label": "Legend" }, entries, h("li", null, h("span", { class: "legend-line" }), "Critical path: the longest chain of unfinished tasks"));
}

function link(id) {
  return h("a", { class: "task-link", dir: "auto", href: router.href({ task: id }) }, store.task(id).title);
}

function idOf({ target }) {
  return target instanceof Element ? (target.closest(".graph-node")?.dataset.id ?? null) : null;
}

function same(one, other) {
  return one !== undefined && Object.keys(other).every((key) => one[key] === other[key]);
}

function count(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

customElements.define("atb-graph", Graph);
