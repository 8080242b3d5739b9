/** A button that puts text on the clipboard and says so. */

import { h, icon } from "./dom.js";

/** `source` gives the text when asked; `label` says what is copied. */
export function copyButton(source, label) {
  const said = h("span", { class: "visually-hidden", role: "status" });
  const button = h("button", { type: "button", class: "button button-quiet copy", "aria-label": label, title: label }, icon("copy"));
  let timer;
  button.addEventListener("click", async () => {
    const copied = await toClipboard(source());
    said.textContent = copied ? "Copied" : "The browser did not allow copying";
    button.dataset.copied = String(copied);
    clearTimeout(timer);
    timer = setTimeout(() => {
      said.textContent = "";
      delete button.dataset.copied;
    }, 2000);
  });
  return h("span", { class: "copy-field" }, button, said);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text); // missing where the page came over plain HTTP from another machine
    return true;
  } catch {
    return false;
  }
}
