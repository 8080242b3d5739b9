/** A button that copies text to the clipboard. */

import { h, icon } from "./dom.js";

/** `source()` returns the text; `label` names the button. */
export function copyButton(source, label) {
  const status = h("span", { class: "visually-hidden", role: "status" });
  const button = h("button", { type: "button", class: "button button-quiet copy", "aria-label": label, title: label }, icon("copy"));
  let timer;
  button.addEventListener("click", async () => {
    const copied = await toClipboard(source());
    status.textContent = copied ? "Copied" : "Your browser blocked copying";
    button.dataset.copied = String(copied);
    clearTimeout(timer);
    timer = setTimeout(() => {
      status.textContent = "";
      delete button.dataset.copied;
    }, 2000);
  });
  return h("span", { class: "copy-field" }, button, status);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text); // undefined if the page came over plain HTTP from another machine
    return true;
  } catch {
    return false;
  }
}
