/** One column: a head with the count, and cards that are created as you scroll to them. */

import { fill, h, icon } from "../dom.js";
import { remember, remembered } from "../store.js";

const FIRST = 6;
const CHUNK = 24;
const AHEAD = "300px";

/** Phones show one column at a time, never folded. */
const phone = matchMedia("(max-width: 760px)");

/** Call `setup(entry, board)` first; the board passes the tasks and owns the cards. */
export class Column extends HTMLElement {
  name = "";
  tasks = [];
  #board = null;
  #shown = FIRST;
  #observer = null;
  #scrolled = false;
  #list = h("div", { class: "cards", role: "list" });
  #end = h("div", { class: "cards-end", "aria-hidden": "true" });
  #scroller = h("div", { class: "column-scroll" }, this.#list, this.#end);
  #empty = h("p", { class: "column-empty" });
  #count = h("span", { class: "badge" });
  #fold = null;
  #entry = null;

  /** Builds the column for one entry of COLUMNS; called once. */
  setup(entry, board) {
    this.#entry = entry;
    this.#board = board;
    this.name = entry.name;
    this.className = `column ${entry.css}`;
    this.dataset.column = entry.name;
    const title = h("h2", { class: "column-title", id: `column-${entry.name}` }, icon(entry.icon), h("span", { class: "column-label" }, entry.label), this.#count);
    const head = h("div", { class: "column-head" }, title);
    this.#list.setAttribute("aria-labelledby", title.id);
    this.append(h("section", { class: "column-box", "aria-labelledby": title.id }, head, this.#empty, this.#scroller));
    if (entry.folds) head.append(this.#createFold());
    this.#watchEnd();
    this.#scroller.addEventListener("scroll", () => {
      this.#scrolled = true;
    }, { passive: true });
    phone.addEventListener("change", () => this.#place());
    return this;
  }

  /** Sets the tasks to show, in order; `restart` scrolls to the top. Call `trim` on all columns afterwards. */
  show(tasks, { count, empty, restart }) {
    this.tasks = tasks;
    if (restart) {
      this.#shown = FIRST;
      this.#toTop();
    }
    if (this.#count.textContent !== count) this.#count.textContent = count;
    this.#empty.hidden = tasks.length > 0;
    if (this.#empty.textContent !== empty) this.#empty.textContent = empty;
    this.#place();
    if (this.#shown < tasks.length) this.#observeEnd();
  }

  /** Drops cards that no longer belong here. A separate step, so that a card that moves to another column keeps its focus. */
  trim() {
    const wanted = this.#wanted();
    for (const card of [...this.#list.children]) if (!wanted.has(card)) this.#board.drop(card);
  }

  /** The cards of this column created so far, from the top. */
  get cards() {
    return [...this.#list.children];
  }

  /** Whether the column is folded to a rail. */
  get folded() {
    return this.classList.contains("is-folded") && !phone.matches;
  }

  /** Setting scrollTop forces a layout, so this does it only after a scroll. */
  #toTop() {
    if (this.#scrolled) this.#scroller.scrollTop = 0;
    this.#scrolled = false;
  }

  #place() {
    const wanted = this.#wanted();
    let next = this.#list.firstElementChild;
    for (const card of wanted) {
      while (next && next !== card && !wanted.has(next)) next = next.nextElementSibling;
      if (next === card) next = next.nextElementSibling;
      else move(this.#list, card, next);
    }
  }

  #wanted() {
    const wanted = new Set();
    for (const task of this.tasks.slice(0, this.folded ? 0 : this.#shown)) wanted.add(this.#board.card(task));
    return wanted;
  }

  #watchEnd() {
    this.#observer = new IntersectionObserver(
      (entries) => {
        if (!entries.at(-1).isIntersecting || this.#shown >= this.tasks.length || this.folded) return;
        this.#shown += CHUNK;
        this.#place();
        this.#observeEnd();
      },
      { root: this.#scroller, rootMargin: `${AHEAD} 0px` },
    );
    this.#observeEnd();
  }

  /** Checks again whether the end is visible; the observer does not report an end that stays visible. */
  #observeEnd() {
    this.#observer.unobserve(this.#end);
    this.#observer.observe(this.#end);
  }

  #createFold() {
    this.#fold = h("button", { class: "button button-quiet button-icon column-fold", type: "button" });
    this.#fold.addEventListener("click", () => {
      const folded = !this.folded;
      this.#setFolded(folded);
      remember(`atb-fold-${this.name}`, folded ? "folded" : "open");
    });
    const stored = remembered(`atb-fold-${this.name}`);
    this.#setFolded(stored ? stored === "folded" : this.name === "cancelled");
    return this.#fold;
  }

  #setFolded(folded) {
    this.classList.toggle("is-folded", folded);
    const label = `${folded ? "Expand" : "Collapse"} ${this.#entry.label}`;
    this.#fold.setAttribute("aria-label", label);
    this.#fold.setAttribute("aria-expanded", String(!folded));
    this.#fold.title = label;
    fill(this.#fold, icon(folded ? "chevron-right" : "chevron-down"));
    this.#place();
    this.trim();
  }
}

/** Moves a card without losing the focus: with moveBefore if the browser has it, otherwise by focusing again. */
function move(list, card, next) {
  if (card.isConnected && list.moveBefore) {
    list.moveBefore(card, next);
    return;
  }
  const focused = card.contains(document.activeElement) ? document.activeElement : null;
  list.insertBefore(card, next);
  focused?.focus({ preventScroll: true });
}

customElements.define("atb-column", Column);
