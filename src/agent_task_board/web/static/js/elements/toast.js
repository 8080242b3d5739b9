/** Short messages at the edge of the page (toasts). */

import { fill, h, icon } from "../dom.js";

const SHOWN_FOR = 6000;
const AT_MOST = 4;
const ICONS = { info: "comment", done: "approve", error: "warning" };

/** Holds the messages. It is a popover that reopens with each message, so it stays above open dialogs. */
export class Toasts extends HTMLElement {
  connectedCallback() {
    this.popover = "manual";
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "Messages");
  }

  /** Shows one message. Errors stay until closed and are announced at once. */
  show(text, kind) {
    const close = h("button", { class: "button button-quiet button-icon", type: "button", "aria-label": "Close message" }, icon("close"));
    const message = h("div", { class: `toast toast-${kind}`, role: kind === "error" ? "alert" : "status" });
    close.addEventListener("click", () => this.#drop(message));
    while (this.children.length >= AT_MOST) this.firstElementChild.remove();
    this.append(message);
    if (this.matches(":popover-open")) this.hidePopover();
    this.showPopover();
    // Screen readers announce text only if its live region is already in the page.
    fill(message, icon(ICONS[kind] ?? ICONS.info), h("span", { class: "toast-text", dir: "auto" }, text), close);
    if (kind !== "error") setTimeout(() => this.#drop(message), SHOWN_FOR);
  }

  #drop(message) {
    message.remove();
    if (!this.children.length && this.matches(":popover-open")) this.hidePopover();
  }
}

customElements.define("atb-toasts", Toasts);

/** Shows a short message; `kind` is info, done or error. */
export function toast(text, { kind = "info" } = {}) {
  document.querySelector("atb-toasts")?.show(text, kind);
}
