/** The dialog that adds a task. */

import { h } from "../dom.js";
import { router } from "../router.js";
import { store } from "../store.js";
import { RoutedDialog } from "./routed-dialog.js";
import "./task-form.js";
import { toast } from "./toast.js";

/** Open while the URL has `new=1`. */
export class NewTask extends RoutedDialog {
  key = "new";
  #form = document.createElement("atb-task-form");

  build() {
    this.dialog.setAttribute("aria-labelledby", "new-task-title");
    this.dialog.classList.add("routed-dialog-new");
    this.dialog.append(
      h("div", { class: "task-bar" }, h("h2", { id: "new-task-title" }, "New task"), h("span", { class: "spacer" }), this.closeButton()),
      this.askPlace,
      h("div", { class: "task-scroll" }, this.#form));
    this.#form.addEventListener("abandon", () => {
      this.discard();
      this.requestClose();
    });
    this.#form.addEventListener("saved", ({ detail }) => this.#saved(detail));
    store.addEventListener("settings", () => this.#closeIfReadOnly());
  }

  opened() {
    this.#form.open(null);
    this.#closeIfReadOnly();
  }

  closed() {
    this.#form.replaceChildren();
  }

  get dirty() {
    return this.#form.dirty;
  }

  discard() {
    this.#form.clear();
  }

  #closeIfReadOnly() {
    if (this.shown && store.readOnly) this.requestClose();
  }

  #saved({ task, warnings }) {
    toast(["Task added", ...warnings].join(". "), { kind: "done" });
    store.refresh();
    router.go({ new: "", task: task.id }, { replace: true });
  }
}

customElements.define("atb-new-task", NewTask);
