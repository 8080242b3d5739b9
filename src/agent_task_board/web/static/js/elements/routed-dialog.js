/** A modal dialog that the URL opens and closes. It asks before unsaved text is lost. */

import { h, icon } from "../dom.js";
import { router } from "../router.js";

/**
 * Base class of the dialogs. A subclass sets its `key` in the URL, fills `dialog` in `build()`, and defines
 * `opened(value)`, `closed()`, `dirty` and `discard()`.
 */
export class RoutedDialog extends HTMLElement {
  dialog = null;
  /** The value of `key` that the dialog shows; "" while it is closed. */
  shown = "";

  #ask = h("div", { class: "ask", role: "alert", hidden: true });
  #target = null; // the router state to go to if the user discards unsaved text
  #pressedOutside = false;
  #focusBefore = null; // the focused element when the question appeared

  connectedCallback() {
    this.dialog = h("dialog", { class: "routed-dialog" });
    this.append(this.dialog);
    this.build();
    this.dialog.addEventListener("keydown", (event) => this.#key(event));
    this.dialog.addEventListener("cancel", (event) => {
      if (event.target !== this.dialog) return;
      event.preventDefault();
      this.requestClose();
    });
    this.dialog.addEventListener("close", () => this.#wasClosed());
    this.dialog.addEventListener("mousedown", (event) => { this.#pressedOutside = event.target === this.dialog; });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog && this.#pressedOutside) this.requestClose();
    });
    router.addEventListener("route", () => this.#routed());
    addEventListener("beforeunload", (event) => {
      if (this.shown && this.dirty) event.preventDefault();
    });
    this.#routed();
  }

  /** The element for the question about unsaved text; `build()` places it. */
  get askPlace() {
    return this.#ask;
  }

  /** Creates a close button for the dialog's head. */
  closeButton() {
    return h("button", { type: "button", class: "button button-quiet button-icon", "aria-label": "Close", on: { click: () => this.requestClose() } }, icon("close"));
  }

  /** Closes the dialog, or asks first if text would be lost. */
  requestClose() {
    if (this.dirty) this.#question({ [this.key]: "" });
    else this.#leave({ [this.key]: "" });
  }

  #key(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    event.preventDefault();
    if (this.#ask.hidden) this.requestClose();
    else this.#keep();
  }

  #routed() {
    const value = router.state[this.key];
    if (value === this.shown) return;
    if (this.shown && this.dirty) {
      const target = { ...router.state };
      router.go({ ...target, [this.key]: this.shown });
      this.#question(target);
      return;
    }
    this.#endQuestion();
    const wasOpen = this.dialog.open;
    this.shown = value;
    if (!value) {
      this.dialog.close();
      return;
    }
    if (!wasOpen) this.dialog.showModal();
    this.opened(value);
  }

  /** Runs after every close. If the browser closed the dialog on its own, the URL must follow. */
  #wasClosed() {
    const before = this.shown;
    this.shown = "";
    this.#endQuestion();
    this.closed();
    if (before) router.go({ [this.key]: "" }, { replace: true });
  }

  #question(target) {
    this.#target = target;
    if (this.#ask.hidden) this.#focusBefore = document.activeElement;
    const keep = h("button", { type: "button", class: "button", on: { click: () => this.#keep() } }, "Keep editing");
    const drop = h("button", { type: "button", class: "button button-danger", on: { click: () => this.#leave(this.#target) } }, "Discard changes");
    this.#ask.replaceChildren(icon("warning"), h("span", { class: "ask-text" }, "You have unsaved changes."), drop, keep);
    this.#ask.hidden = false;
    keep.focus();
  }

  #keep() {
    this.#endQuestion();
    this.#focusBefore?.focus();
  }

  #endQuestion() {
    this.#ask.hidden = true;
    this.#target = null;
  }

  #leave(target) {
    this.discard();
    router.go(target, { replace: true });
  }
}
