/** Selects the dependencies of a task, by the end of an id or part of a title. */

import { fill, h, icon } from "../dom.js";
import { isFinal, shortId, statusOf } from "../status.js";
import { store } from "../store.js";

const SHOWN = 8;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** Call `setUp({id, self})` first; `values` reads and writes ids; fires "input" when they change. */
export class DependencyField extends HTMLElement {
  #values = [];
  #self = null;
  #found = [];
  #active = -1;
  #chosen = h("ul", { class: "chosen-tasks", hidden: true });
  #input = null;
  #options = null;

  setUp({ id, self = null, describedBy = null }) {
    this.#self = self;
    this.#options = h("ul", { id: `${id}-options`, class: "options", role: "listbox", "aria-label": "Matching tasks", hidden: true });
    this.#input = h("input", {
      id, dir: "auto", autocomplete: "off", role: "combobox", placeholder: "ID or part of a title",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.#options.id, "aria-describedby": describedBy,
    });
    this.#input.addEventListener("input", (event) => {
      event.stopPropagation(); // typing a search changes no value
      this.#search();
    });
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#input.addEventListener("blur", () => this.#close());
    // A mousedown would move the focus away and close the list before the click.
    this.#options.addEventListener("mousedown", (event) => event.preventDefault());
    fill(this, this.#chosen, h("div", { class: "combobox" }, this.#input, this.#options));
    return this;
  }

  get values() {
    return [...this.#values];
  }

  set values(ids) {
    this.#values = [...ids];
    this.#draw();
  }

  /** Typed text that selected no task; the form must not silently drop it. */
  get unfinished() {
    return this.#input.value.trim();
  }

  #search() {
    const words = this.#input.value.trim();
    this.#found = words ? matches(words, new Set([...this.#values, this.#self])) : [];
    this.#active = this.#found.length ? 0 : -1;
    fill(this.#options, ...this.#found.map((task, index) => this.#option(task, index)));
    if (words && !this.#found.length) {
      fill(this.#options, h("li", { class: "option soft", role: "option", "aria-disabled": "true", "aria-selected": "false" },
        ULID.test(words.toUpperCase()) ? "Not on the board. Press Enter to use this ID." : "No matching tasks"));
    }
    this.#options.hidden = !words;
    this.#input.setAttribute("aria-expanded", String(Boolean(words)));
    this.#showActive();
    if (words) this.#options.scrollIntoView({ block: "nearest" });
  }

  #option(task, index) {
    const { label, icon: name, css } = statusOf(task);
    const option = h("li", { id: `${this.#options.id}-${index}`, class: `option ${css}`, role: "option", "aria-selected": "false" },
      icon(name, label), h("span", { class: "task-row-title", dir: "auto" }, task.title), h("span", { class: "mono soft" }, shortId(task.id)));
    option.addEventListener("click", () => this.#choose(task.id));
    return option;
  }

  #showActive() {
    [...this.#options.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === this.#active)));
    const option = this.#active < 0 ? null : this.#options.children[this.#active];
    if (option) {
      this.#input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else {
      this.#input.removeAttribute("aria-activedescendant");
    }
  }

  #key(event) {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.#found.length) {
      event.preventDefault();
      this.#active = (this.#active + step + this.#found.length) % this.#found.length;
      this.#showActive();
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && this.unfinished) {
      event.preventDefault();
      const id = this.#found[this.#active]?.id ?? this.unfinished.toUpperCase();
      if (this.#found.length || ULID.test(id)) this.#choose(id);
    } else if (event.key === "Escape" && !this.#options.hidden) {
      event.preventDefault();
      event.stopPropagation();
      this.#close();
    }
  }

  #close() {
    this.#options.hidden = true;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
  }

  #choose(id) {
    if (!this.#values.includes(id)) this.#values.push(id);
    this.#input.value = "";
    this.#close();
    this.#changed();
  }

  #remove(id) {
    this.#values = this.#values.filter((other) => other !== id);
    this.#changed();
    this.#input.focus();
  }

  #changed() {
    this.#draw();
    this.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #draw() {
    fill(this.#chosen, ...this.#values.map((id) => {
      const task = store.task(id);
      const { label, icon: name, css } = task ? statusOf(task) : { label: "Not on the board", icon: "link", css: "" };
      const title = task?.title ?? id;
      return h("li", { class: `chosen-task ${css}` },
        icon(name, label), h("span", { class: "task-row-title", dir: "auto" }, title), h("span", { class: "mono soft" }, shortId(id)),
        h("button", { type: "button", class: "chip-remove", "aria-label": `Remove dependency ${title}`, on: { click: () => this.#remove(id) } }, icon("close")));
    }));
    this.#chosen.hidden = this.#values.length === 0;
  }
}

/** Tasks whose id or title contains the text: matching id ends first, then unfinished tasks. */
function matches(words, without) {
  const asId = words.toUpperCase();
  const asTitle = words.toLowerCase();
  const byId = [];
  const open = [];
  const over = [];
  for (const task of store.sorted) {
    if (without.has(task.id)) continue;
    if (asId.length >= 4 && task.id.endsWith(asId)) byId.push(task);
    else if (task.title.toLowerCase().includes(asTitle) || (asId.length >= 4 && task.id.includes(asId))) (isFinal(task) ? over : open).push(task);
    if (byId.length + open.length >= SHOWN * 4) break;
  }
  return [...byId, ...open, ...over].slice(0, SHOWN);
}

customElements.define("atb-dependency-field", DependencyField);
