/** A chart over days: SVG marks, a cursor (pointer or arrow keys) that reads out one day, and a table. */

import { dayText, shortDay } from "./chart-scale.js";
import { fill, h, svg } from "./dom.js";

const HEIGHT = 168;
const BOTTOM = 22;
const TOP = 10;
const LABEL_ROOM = 56;

export class DayChart {
  #kind;
  #days = [];
  #cursor = null;
  #plot;
  #drawing = svg("svg", { "aria-hidden": "true" });
  #readout = h("p", { class: "chart-readout" });
  #table = h("div", { class: "chart-table" });
  #notes = h("p", { class: "chart-notes" });
  #foot;
  #summary = "";
  #lines = [];

  /**
   * @param {object} kind what the chart shows:
   *   `title`, `hint`; `ticks(largest)`, `tickText(value)`; `value(day)` the height that must fit (null: none);
   *   `marks(day, place)` SVG of one day, place = {x, width, y(value), base}; `line` joins the values of days;
   *   `describe(day)` the day in words; `columns` [{head, text(day)}] of the table; `legend` nodes
   */
  constructor(kind) {
    this.#kind = kind;
    this.#plot = h("div", { class: "chart-plot", tabIndex: 0, role: "slider", "aria-label": `${kind.title}: day`, "aria-orientation": "horizontal" }, this.#drawing);
    const table = h("details", { class: "chart-details" }, h("summary", null, "Show as table"), this.#table);
    this.#foot = h("div", { class: "chart-foot" }, kind.legend, table);
    this.element = h("figure", { class: "panel chart" },
      h("figcaption", { class: "panel-head" }, h("h3", null, kind.title), kind.hint ? h("span", { class: "hint" }, kind.hint) : null),
      this.#notes, this.#readout, this.#plot, this.#foot);
    this.#plot.addEventListener("keydown", (event) => this.#key(event));
    this.#plot.addEventListener("focus", () => this.#point(this.#cursor ?? this.#days.length - 1));
    this.#plot.addEventListener("blur", () => this.#point(null));
    this.#plot.addEventListener("pointermove", (event) => this.#point(this.#dayAt(event)));
    this.#plot.addEventListener("pointerdown", (event) => this.#point(this.#dayAt(event)));
    this.#plot.addEventListener("pointerleave", () => this.#point(document.activeElement === this.#plot ? this.#cursor : null));
    new ResizeObserver(() => this.#draw()).observe(this.#plot);
  }

  /** Shows other days. `summary` is the text when no day is selected; `lines` are horizontal lines: {value, css}. */
  update({ days, summary, notes = [], lines = [] }) {
    this.#days = days;
    this.#summary = summary;
    this.#lines = lines.filter((line) => line.value !== null && line.value !== undefined);
    fill(this.#notes, notes);
    this.#notes.hidden = notes.length === 0;
    this.#plot.hidden = this.#foot.hidden = days.every((day) => !this.#kind.value(day));
    if (this.#cursor !== null && this.#cursor >= days.length) this.#cursor = null;
    this.#draw();
    this.#point(this.#cursor);
    const heads = [h("th", { scope: "col" }, "Day"), ...this.#kind.columns.map(({ head }) => h("th", { scope: "col", class: "number" }, head))];
    const rows = days.map((day) => h("tr", null, h("th", { scope: "row" }, dayText(day.day)), this.#kind.columns.map(({ text }) => h("td", { class: "number" }, text(day)))));
    fill(this.#table, h("table", { class: "data-table" }, h("caption", { class: "visually-hidden" }, this.#kind.title), h("thead", null, h("tr", null, heads)), h("tbody", null, rows)));
  }

  #draw() {
    const width = this.#plot.clientWidth;
    if (!width || !this.#days.length) return;
    const { ticks: makeTicks, tickText, value, marks, line } = this.#kind;
    const values = this.#days.map(value);
    const largest = Math.max(...values.map((number) => number ?? 0), ...this.#lines.map((across) => across.value));
    const ticks = makeTicks(largest);
    const left = 12 + Math.max(...ticks.map((tick) => tickText(tick).length)) * 6.5;
    const step = (width - left) / this.#days.length;
    const base = HEIGHT - BOTTOM;
    const y = (number) => base - (number / ticks.at(-1)) * (base - TOP);
    const middle = (index) => left + (index + 0.5) * step;
    const every = Math.ceil(LABEL_ROOM / step);
    const last = this.#days.length - 1;
    this.#drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    fill(this.#drawing,
      svg("rect", { class: "chart-cursor", x: 0, y: TOP - 6, width: step, height: base - TOP + 6, rx: Math.min(6, step / 3), visibility: "hidden" }),
      ticks.map((tick) => [
        svg("line", { class: tick ? "chart-grid" : "chart-base", x1: left, x2: width, y1: y(tick), y2: y(tick) }),
        svg("text", { class: "chart-tick", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)),
      ]),
      this.#lines.map((across) => svg("line", { class: `chart-across ${across.css}`, x1: left, x2: width, y1: y(across.value), y2: y(across.value) })),
      line ? svg("path", { class: "chart-line", d: joined(values, middle, y) }) : null,
      this.#days.map((day, index) => marks(day, { x: middle(index), width: step, y, base })),
      this.#days.map((day, index) => ((last - index) % every === 0
        ? svg("text", { class: "chart-tick", x: Math.min(middle(index), width - 18), y: HEIGHT - 5, "text-anchor": "middle" }, shortDay(day.day))
        : null)));
    this.#geometry = { left, step };
    this.#mark();
  }

  #geometry = { left: 0, step: 1 };

  #dayAt(event) {
    const x = event.clientX - this.#plot.getBoundingClientRect().left - this.#geometry.left;
    return Math.min(this.#days.length - 1, Math.max(0, Math.floor(x / this.#geometry.step)));
  }

  #key(event) {
    const last = this.#days.length - 1;
    const at = this.#cursor ?? last;
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at + 7, PageDown: at - 7, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#point(Math.min(last, Math.max(0, to)));
  }

  /** Reads out the day at an index; null shows the summary. */
  #point(index) {
    if (!this.#days.length) return;
    this.#cursor = index;
    const day = this.#days[index ?? this.#days.length - 1];
    const text = `${dayText(day.day)}: ${this.#kind.describe(day)}`;
    this.#readout.textContent = index === null ? this.#summary : text;
    const values = { min: 0, max: this.#days.length - 1, now: index ?? this.#days.length - 1, text: text };
    for (const [name, value] of Object.entries(values)) this.#plot.setAttribute(`aria-value${name}`, value);
    this.#mark();
  }

  #mark() {
    const cursor = this.#drawing.firstElementChild;
    if (!cursor) return;
    cursor.setAttribute("visibility", this.#cursor === null ? "hidden" : "visible");
    cursor.setAttribute("x", this.#geometry.left + (this.#cursor ?? 0) * this.#geometry.step);
  }
}

/** The path through the days that have a value. */
function joined(values, middle, y) {
  return values
    .map((value, index) => (value === null ? null : `${middle(index).toFixed(1)} ${y(value).toFixed(1)}`))
    .filter((place) => place !== null)
    .map((place, index) => `${index ? "L" : "M"}${place}`)
    .join("");
}
