/** Startup: defines the elements, switches views, registers the shortcuts, starts polling. */

import { startAnnounce } from "./announce.js";
import "./filters.js";
import { shortcut, startKeyboard } from "./keyboard.js";
import { startNotify } from "./notify.js";
import { router } from "./router.js";
import { search } from "./search.js";
import { signInFromLink } from "./session.js";
import { store } from "./store.js";
import "./elements/board.js";
import { toggleActivity } from "./elements/header.js";
import "./elements/strip.js";
import "./elements/toast.js";

const VIEWS = ["board", "graph", "flow"];
const board = document.querySelector("atb-board");

/** Shows the view that the URL names. */
function showView() {
  for (const view of VIEWS) document.querySelector(`atb-${view}`).hidden = view !== router.state.view;
  document.querySelector("atb-filters").hidden = router.state.view === "flow";
  document.documentElement.dataset.view = router.state.view;
}

/** Moves the focus between cards. Returns false where arrow keys have another meaning. */
function step(key, down, right = 0) {
  const { activeElement } = document;
  const free = activeElement === document.body || activeElement?.id === "main" || board.contains(activeElement);
  if (router.state.view !== "board" || (key.startsWith("Arrow") && !free)) return false;
  return board.moveFocus(down, right);
}

function go(changes) {
  return () => router.go(changes);
}

shortcut("g b", "Board", go({ view: "board" }), { group: "Go to" });
shortcut("g g", "Graph", go({ view: "graph" }), { group: "Go to" });
shortcut("g f", "Flow", go({ view: "flow" }), { group: "Go to" });
shortcut("a", "Activity", toggleActivity, { group: "Go to" });
shortcut("j", "Next card", (key) => step(key, 1), { group: "Tasks", aliases: ["ArrowDown"] });
shortcut("k", "Previous card", (key) => step(key, -1), { group: "Tasks", aliases: ["ArrowUp"] });
shortcut("ArrowLeft", "Previous column", (key) => step(key, 0, -1), { group: "Tasks" });
shortcut("ArrowRight", "Next column", (key) => step(key, 0, 1), { group: "Tasks" });
shortcut("Enter", "Open the card", () => false, { group: "Tasks" });
shortcut("n", "New task", () => !store.readOnly && void router.go({ new: "1", task: "" }), { group: "Tasks" });
shortcut("/", "Search", () => document.querySelector("atb-filters").focusSearch(), { group: "Tasks" });

router.addEventListener("route", showView);
showView();
search.start();
startKeyboard();
startNotify();
startAnnounce(document.querySelector("#announcer"));
signInFromLink().then(() => store.start());
addEventListener("hashchange", () => signInFromLink().then(() => store.refresh()));

// Load what the first paint does not need while the board is loading.
for (const name of ["task-dialog", "new-task", "activity", "graph", "flow"]) import(`./elements/${name}.js`);
