/** The flow page: throughput, durations and the age of running work, all from /api/stats. */

import { get, Refusal } from "../api.js";
import { countTicks, lengthText, lengthTicks } from "../chart-scale.js";
import { DayChart } from "../day-chart.js";
import { fill, h, icon, svg } from "../dom.js";
import { swap } from "../live-part.js";
import { nameplate } from "../people.js";
import { visible } from "../printable.js";
import { router } from "../router.js";
import { statusOf } from "../status.js";
import { lease, remember, remembered, store } from "../store.js";
import { stamp } from "../time.js";

const SPANS = [7, 14, 30, 90];
const PAUSE = 3000;
const MOST_RUNNING = 20;
const FINAL = ["done", "failed", "cancelled"];
const COLUMNS = [
  { status: "queued", label: "Queued", of: (counts) => counts.queued },
  { status: "running", label: "In progress", of: (counts) => counts.claimed + counts.running },
  { status: "review", label: "Review", of: (counts) => counts.review },
  ...FINAL.map((status) => ({ status, label: statusOf({ status }).label, of: (counts) => counts[status] })),
];

export class Flow extends HTMLElement {
  #days = SPANS.includes(Number(remembered("atb-flow-days"))) ? Number(remembered("atb-flow-days")) : 14;
  #readAt = -Infinity;
  #timer = 0;
  #shown = "";
  #message = h("p", { class: "view-message", role: "alert", hidden: true });
  #tiles = h("dl", { class: "tiles" });
  #running = h("div", { class: "panel-body" });
  #agents = h("div", { class: "panel-body" });
  #queues = h("div", { class: "panel-body" });
  #finished = finishedChart();
  #lead = timeChart("Lead time", "from creation to done", "lead_time");
  #cycle = timeChart("Cycle time", "from the last claim to done", "cycle_time");

  connectedCallback() {
    if (this.childElementCount) return;
    this.append(
      h("div", { class: "flow-head" }, h("h2", { class: "view-title" }, "Flow"), this.#spans()),
      this.#message,
      this.#tiles,
      h("div", { class: "flow-panels" },
        this.#finished.element, this.#lead.element, this.#cycle.element,
        panel("Running now", "oldest first", this.#running), panel("Agents", "finished tasks", this.#agents),
        panel("Queues", "tasks by status", this.#queues)));
    this.#finished.element.classList.add("is-wide");
    this.#queues.parentElement.classList.add("is-wide");
    router.addEventListener("route", () => this.#scheduleRead());
    store.addEventListener("tasks", () => this.#scheduleRead());
    this.#scheduleRead();
  }

  #spans() {
    const buttons = SPANS.map((days) => h("button", { class: "switcher-item", type: "button", "aria-pressed": String(days === this.#days), on: { click: () => this.#choose(days, buttons) } }, String(days)));
    return h("div", { class: "switcher", role: "group", "aria-label": "Days shown" }, buttons, h("span", { class: "hint" }, "days"));
  }

  #choose(days, buttons) {
    this.#days = days;
    remember("atb-flow-days", String(days));
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(SPANS[index] === days)));
    this.#read();
  }

  /** Reloads after a board change, at most every few seconds and only while this view is shown. */
  #scheduleRead() {
    if (this.#timer || router.state.view !== "flow") return;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (router.state.view === "flow") this.#read();
    }, Math.max(0, this.#readAt + PAUSE - performance.now()));
  }

  async #read() {
    const days = this.#days;
    this.#readAt = performance.now();
    try {
      const { data } = await get(`/api/stats?days=${days}`);
      if (days === this.#days) this.#show(data);
      this.#message.hidden = true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#message.textContent = visible(`${error.message} ${error.hint}`);
      this.#message.hidden = false;
    }
  }

  #show(stats) {
    const text = JSON.stringify(stats, (key, value) => (key === "age" ? undefined : value));
    if (text === this.#shown) return;
    this.#shown = text;
    const sums = Object.fromEntries(FINAL.map((status) => [status, stats.finished.reduce((sum, day) => sum + day[status], 0)]));
    fill(this.#tiles, tiles(stats, sums));
    const none = FINAL.every((status) => sums[status] === 0);
    this.#finished.update({ days: stats.finished, summary: none ? `No tasks finished in the last ${stats.days} days.` : `${finalCounts(sums)} in the last ${stats.days} days` });
    for (const [chart, key] of [[this.#lead, "lead_time"], [this.#cycle, "cycle_time"]]) {
      const { tasks, median, p90 } = stats[key];
      chart.update({
        days: stats.finished,
        summary: tasks ? "Each dot is the median of one day." : `No tasks done in the last ${stats.days} days.`,
        notes: tasks ? [figure("median", lengthText(median), "is-median"), figure("90th percentile", lengthText(p90), "is-p90")] : [],
        lines: [{ value: median, css: "is-median" }, { value: p90, css: "is-p90" }],
      });
    }
    swap(this.#running, running(stats));
    fill(this.#agents, agents(stats));
    fill(this.#queues, queues(stats));
  }
}

function finishedChart() {
  return new DayChart({
    title: "Finished per day",
    ticks: countTicks,
    tickText: (value) => value.toLocaleString("en"),
    value: (day) => FINAL.reduce((sum, status) => sum + day[status], 0),
    describe: (day) => finalCounts(day),
    columns: FINAL.map((status) => ({ head: statusOf({ status }).label, text: (day) => String(day[status]) })),
    legend: h("ul", { class: "chart-legend" }, FINAL.map((status) => {
      const { css, label } = statusOf({ status });
      return h("li", { class: css }, h("span", { class: `legend-swatch bar-${status}` }), label);
    })),
    marks: (day, { x, width, y, base }) => {
      const bar = Math.min(36, width * 0.64);
      let sum = 0;
      return FINAL.filter((status) => day[status]).map((status) => {
        const top = y(sum + day[status]);
        const bottom = sum ? y(sum) - 1.5 : base;
        sum += day[status];
        const height = Math.max(1, bottom - top);
        return svg("rect", { class: `chart-bar bar-${status} ${statusOf({ status }).css}`, x: x - bar / 2, y: top, width: bar, height, rx: Math.min(3, height / 2) });
      });
    },
  });
}

function timeChart(title, hint, key) {
  return new DayChart({
    title,
    hint,
    line: true,
    ticks: (largest) => lengthTicks(largest, 3),
    tickText: (value) => (value ? lengthText(value) : "0"),
    value: (day) => day[key],
    describe: (day) => (day[key] === null ? "nothing done" : `median ${lengthText(day[key])} of ${plural(day.done, "task")}`),
    columns: [{ head: "Median", text: (day) => lengthText(day[key]) }, { head: "Done", text: (day) => String(day.done) }],
    marks: (day, { x, y }) => (day[key] === null ? null : svg("circle", { class: "chart-dot", cx: x, cy: y(day[key]), r: 3.5 })),
  });
}

function tiles(stats, sums) {
  const { by_status: counts } = stats;
  const entries = [
    ["Ready", stats.ready, { status: "queued" }],
    ["Blocked", stats.blocked, { status: "queued", blocked: true }],
    ["In progress", counts.claimed + counts.running, { status: "running" }],
    ["In review", counts.review, { status: "review" }],
    [`Done in last ${stats.days} days`, sums.done, { status: "done" }],
  ];
  if (stats.stuck) entries.splice(2, 0, ["Stuck", stats.stuck, { status: "queued", blocked: true }]);
  if (stats.lease_expired) entries.splice(-2, 0, ["Expired leases", stats.lease_expired, null]);
  return entries.map(([label, value, task]) => {
    const { css, icon: name } = task ? statusOf(task) : { css: "is-failed", icon: "silent" };
    return h("div", { class: `tile ${css}` }, h("dt", null, icon(name), label), h("dd", null, value.toLocaleString("en")));
  });
}

function running({ running: tasks, cycle_time: cycle }) {
  if (!tasks.length) return h("p", { class: "hint" }, "No tasks are running.");
  const oldest = Math.max(...tasks.map((task) => task.age), 1);
  const rows = tasks.slice(0, MOST_RUNNING).map((task) => {
    const long = cycle.p90 !== null && task.age > cycle.p90;
    const bar = h("span", { class: "age-bar" });
    bar.style.setProperty("--part", String(Math.max(0.01, task.age / oldest)));
    return h("li", { class: long ? "age is-long" : "age" },
      h("a", { class: "task-link", dir: "auto", href: router.href({ task: task.id }) }, task.title),
      h("span", { class: "age-holder" }, silent(store.task(task.id)) ? h("span", { class: "chip chip-danger" }, icon("silent"), "silent") : null, nameplate(task.claimed_by)),
      bar,
      h("span", { class: "age-text" }, long ? icon("warning", "Longer than the 90th percentile of cycle times") : null, stamp(task.claimed_at, { elapsed: true })));
  });
  const more = tasks.length - rows.length;
  return [h("ol", { class: "ages" }, rows), more > 0 ? h("p", { class: "hint" }, `and ${plural(more, "more task")}`) : null];
}

function silent(task) {
  return task && lease(task)?.silent;
}

function agents({ by_agent: list, days }) {
  if (!list.length) return h("p", { class: "hint" }, `No agent finished a task in the last ${days} days.`);
  const most = Math.max(...list.map((agent) => agent.done), 1);
  const rows = list.map((agent) => {
    const bar = h("span", { class: "count-bar is-done", "aria-hidden": "true" });
    bar.style.setProperty("--part", String(agent.done / most));
    return h("tr", null,
      h("th", { scope: "row" }, nameplate(agent.agent)),
      h("td", { class: "bar-cell" }, h("span", { class: "bar-value" }, String(agent.done)), bar),
      h("td", { class: agent.failed ? "number is-bad" : "number" }, String(agent.failed)),
      h("td", { class: "number" }, lengthText(agent.cycle_time.median)));
  });
  const heads = [["Agent"], ["Done"], ["Failed", "number"], ["Median cycle", "number"]].map(([text, css]) => h("th", { scope: "col", class: css }, text));
  return h("table", { class: "data-table" }, h("caption", { class: "visually-hidden" }, "Agents"), h("thead", null, h("tr", null, heads)), h("tbody", null, rows));
}

function queues({ by_queue: queuesByName, by_status: sums }) {
  const row = (name, counts) => h("tr", null,
    h("th", { scope: "row" }, name),
    COLUMNS.map(({ of }) => h("td", { class: of(counts) ? "number" : "number is-zero" }, of(counts).toLocaleString("en"))),
    h("td", { class: "number is-sum" }, Object.values(counts).reduce((sum, count) => sum + count, 0).toLocaleString("en")));
  const names = Object.keys(queuesByName);
  if (!names.length) return h("p", { class: "hint" }, "No tasks yet.");
  const heads = COLUMNS.map(({ status, label }) => h("th", { scope: "col", class: `number ${statusOf({ status }).css}` }, h("span", { class: "head-status", title: label }, icon(statusOf({ status }).icon), h("span", { class: "head-text" }, label))));
  return h("table", { class: "data-table queue-table" },
    h("caption", { class: "visually-hidden" }, "Tasks by queue and status"),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Queue"), heads, h("th", { scope: "col", class: "number" }, "All"))),
    h("tbody", null, names.map((name) => row(name, queuesByName[name]))),
    names.length > 1 ? h("tfoot", null, row("All queues", sums)) : null);
}

function panel(title, hint, body) {
  return h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", null, title), h("span", { class: "hint" }, hint)), body);
}

function figure(label, value, css) {
  return h("span", { class: `figure ${css}` }, h("b", null, value), ` ${label}`);
}

function finalCounts(counts) {
  const parts = FINAL.filter((status) => counts[status]).map((status) => `${counts[status].toLocaleString("en")} ${status}`);
  return parts.join(", ") || "nothing finished";
}

function plural(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

customElements.define("atb-flow", Flow);
