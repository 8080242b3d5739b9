/** A modal dialog that the address opens and closes, and that asks once before typed text is lost. */

import { h, icon } from "../dom.js";
import { router } from "../router.js";

/**
 * Base of the dialogs. A subclass names its `key` in the address, fills `dialog` in `build()`, and has `opened(value)`,
 * `closed()`, `dirty` and `discard()`.
 */
export class RoutedDialog extends HTMLElement {
  dialog = null;
  /** What the address asked for and the dialog shows; "" while closed. */
  shown = "";

  #ask = h("div", { class: "ask", role: "alert", hidden: true });
  #wanted = null; // where the address went while text was unsaved
  #pressedOutside = false;
  #writing = null; // where the cursor was when the question came

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

  /** The place for the question about unsaved text; `build()` puts it where it is seen. */
  get askPlace() {
    return this.#ask;
  }

  /** A close button for the dialog's head. */
  closeButton() {
    return h("button", { type: "button", class: "button button-quiet button-icon", "aria-label": "Close", on: { click: () => this.requestClose() } }, icon("close"));
  }

  /** Closes, or asks first where text would be lost. */
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
      const wanted = { ...router.state };
      router.go({ ...wanted, [this.key]: this.shown });
      this.#question(wanted);
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

  /** Also when the browser closed it unasked: the address must follow. */
  #wasClosed() {
    const before = this.shown;
    this.shown = "";
    this.#endQuestion();
    this.closed();
    if (before) router.go({ [this.key]: "" }, { replace: true });
  }

  #question(wanted) {
    this.#wanted = wanted;
    if (this.#ask.hidden) this.#writing = document.activeElement;
    const keep = h("button", { type: "button", class: "button", on: { click: () => this.#keep() } }, "Keep writing");
    const drop = h("button", { type: "button", class: "button button-danger", on: { click: () => this.#leave(this.#wanted) } }, "Discard it");
    this.#ask.replaceChildren(icon("warning"), h("span", { class: "ask-text" }, "What you typed is not saved."), drop, keep);
    this.#ask.hidden = false;
    keep.focus();
  }

  #keep() {
    this.#endQuestion();
    this.#writing?.focus();
  }

  #endQuestion() {
    this.#ask.hidden = true;
    this.#wanted = null;
  }

  #leave(wanted) {
    this.discard();
    router.go(wanted, { replace: true });
  }
}
