/** What the server refused, shown beside the control that asked. */

import { Refusal } from "./api.js";
import { fill, h, icon } from "./dom.js";

/** A place for one refusal: `node`, `show(error)` and `clear()`. What is no refusal is a bug and is thrown on. */
export function refusalBox() {
  const node = h("div", { class: "refusal", role: "alert", hidden: true });
  const clear = () => {
    node.hidden = true;
    node.replaceChildren();
  };
  const show = (error) => {
    if (!(error instanceof Refusal)) throw error;
    node.hidden = false;
    fill(node, icon("warning"), h("div", { class: "refusal-text" },
      h("p", { dir: "auto" }, error.message),
      error.hint && h("p", { class: "hint", dir: "auto" }, error.hint)));
    node.scrollIntoView({ block: "nearest" });
  };
  return { node, show, clear };
}

/** Runs a write once at a time: its button rests meanwhile, a refusal goes into the box. True when it worked. */
export async function attempt(button, box, action) {
  if (button.getAttribute("aria-disabled") === "true") return false;
  button.setAttribute("aria-disabled", "true"); // `disabled` would drop the focus
  box.clear();
  try {
    await action();
    return true;
  } catch (error) {
    box.show(error);
    return false;
  } finally {
    button.removeAttribute("aria-disabled");
  }
}
