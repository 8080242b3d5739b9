/** Signing in, where the server asks for it: the one-time code of a link becomes the session of this browser. */

import { Refusal, signIn, signOut } from "./api.js";
import { h } from "./dom.js";
import { refusalBox, runAction } from "./refusal.js";
import { remember, remembered, store } from "./store.js";

const SIGNED_IN_KEY = "atb-signed-in";

/** The Refusal of the link that this page was opened with, or null. */
let refusal = null;

/** Signs in if the address has a code, and removes the code from the address and the history. */
export async function signInFromLink() {
  const code = codeIn(location.hash);
  if (!code) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    await useCode(code);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refusal = error;
  }
}

/** Whether this browser signed in here, and has not signed out. */
export function isSignedIn() {
  return Boolean(remembered(SIGNED_IN_KEY));
}

/** A button that signs out; hidden while there is no session. */
export function signOutButton() {
  const box = refusalBox();
  const button = h("button", { class: "button", type: "button" }, "Sign out");
  const part = h("div", { class: "field" }, button, box.node);
  button.addEventListener("click", () => runAction(button, box, async () => {
    await signOut();
    remember(SIGNED_IN_KEY, "");
    part.hidden = true;
    store.refresh();
  }));
  return { node: part, show: () => { part.hidden = !isSignedIn(); } };
}

/** What is shown instead of the board until somebody signs in. */
export function signInForm() {
  const box = refusalBox();
  const code = h("input", { id: "sign-in-code", type: "text", autocomplete: "off", spellcheck: false, required: true });
  const button = h("button", { class: "button button-primary", type: "submit" }, "Sign in");
  const form = h("form", { class: "sign-in" }, h("label", { for: "sign-in-code" }, "Link or code"), code, button, box.node);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    runAction(button, box, async () => {
      await useCode(codeIn(code.value) || code.value.trim());
      await store.refresh();
    });
  });
  if (refusal) box.show(refusal);
  return form;
}

async function useCode(code) {
  await signIn(code);
  refusal = null;
  remember(SIGNED_IN_KEY, "1");
}

/** The code in the fragment of a link; "" if there is none. */
function codeIn(link) {
  const at = link.indexOf("#");
  return at < 0 ? "" : new URLSearchParams(link.slice(at + 1)).get("code") ?? "";
}
