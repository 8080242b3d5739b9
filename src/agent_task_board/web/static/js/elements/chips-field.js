/** A field with several values as chips; Enter or a comma adds the typed one. Used for tags. */

import { fill, h, icon } from "../dom.js";

/** Call `setUp({id, suggestions})` first; `values` reads and writes the values; fires "input" when they change. */
export class ChipsField extends HTMLElement {
  #values = [];
  #chips = h("ul", { class: "chips", hidden: true });
  #input = null;

  setUp({ id, suggestions = [] }) {
    const list = suggestions.length ? h("datalist", { id: `${id}-list` }, ...suggestions.map((value) => h("option", { value }))) : null;
    this.#input = h("input", { id,  dir: "auto", autocomplete: "off", list: list && list.id });
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#input.addEventListener("change", () => this.#addTyped());
    fill(this, this.#chips, this.#input, list);
    return this;
  }

  /** All values, including text still in the input. */
  get values() {
    const typed = this.#input.value.split(",").map((value) => value.trim()).filter(Boolean);
    return [...new Set([...this.#values, ...typed])];
  }

  set values(values) {
    this.#values = [...values];
    this.#input.value = "";
    this.#draw();
  }

  #key(event) {
    if (event.isComposing) return;
    if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey && this.#input.value.trim()) || event.key === ",") {
      event.preventDefault();
      this.#addTyped();
    } else if (event.key === "Backspace" && !this.#input.value && this.#values.length) {
      this.#values.pop();
      this.#changed();
    }
  }

  #addTyped() {
    const values = this.values;
    this.#input.value = "";
    this.#values = values;
    this.#changed();
  }

  #changed() {
    this.#draw();
    this.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #remove(value) {
    this.#values = this.#values.filter((other) => other !== value);
    this.#changed();
    this.#input.focus();
  }

  #draw() {
    fill(this.#chips, ...this.#values.map((value) => h("li", { class: "chip chip-removable" },
      h("span", { class: "chip-text", dir: "auto" }, value),
      h("button", { type: "button", class: "chip-remove", "aria-label": `Remove ${value}`, on: { click: () => this.#remove(value) } }, icon("close")))));
    this.#chips.hidden = this.#values.length === 0;
  }
}

customElements.define("atb-chips-field", ChipsField);
