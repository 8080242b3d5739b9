/** Shows a server error beside the control that caused it. */

import { Refusal } from "./api.js";
import { fill, h, icon } from "./dom.js";

/** A box for one refusal: `node`, `show(error)` and `clear()`. `show` rethrows any other error, because that is a bug. */
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

/** Runs an action, one at a time: disables its button meanwhile and shows a refusal in the box. Resolves to success. */
export async function runAction(button, box, action) {
  if (button.getAttribute("aria-disabled") === "true") return false;
  button.setAttribute("aria-disabled", "true"); // `disabled` would lose the focus
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
