/** Settings of this browser: theme and name, in a popover. */

import { h, icon } from "./dom.js";
import { signOutButton } from "./session.js";
import { remember, remembered, store } from "./store.js";

const THEME_KEY = "atb-theme";
const THEMES = [
  { value: "", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** The chosen theme: light, dark, or "" for the system's. */
export function theme() {
  return remembered(THEME_KEY);
}

/** Whether the page is dark now, by choice or by the system. */
export function isDark() {
  return (theme() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

/** Sets and remembers the theme; "" follows the system. Fires "theme" on the document. */
export function setTheme(value) {
  remember(THEME_KEY, value);
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new Event("theme"));
}

/** The settings popover; `extra` adds the controls that do not fit into the header on a phone. */
export function settingsPopover(extra) {
  const name = h("input", { id: "settings-name", type: "text", maxLength: 100, autocomplete: "off", spellcheck: false, placeholder: "Server login name", "aria-describedby": "settings-name-hint" });
  name.addEventListener("input", () => store.setMe(name.value));
  const radios = THEMES.map(({ value, label }) => {
    const radio = h("input", { type: "radio", name: "theme", value });
    radio.addEventListener("change", () => setTheme(value));
    return { radio, label: h("label", { class: "segment" }, radio, h("span", null, label)) };
  });
  const about = h("p", { class: "hint" });
  const leave = signOutButton();
  const popover = h(
    "div",
    { class: "popover settings", id: "settings", popover: "auto", role: "dialog", "aria-label": "Settings" },
    h("div", { class: "field settings-name" }, h("label", { for: "settings-name" }, "Your name"), name, h("p", { class: "hint", id: "settings-name-hint" }, "The history shows this name next to your actions. Leave empty to use the server’s login name.")),
    h("fieldset", { class: "field" }, h("legend", { class: "label" }, "Theme"), h("div", { class: "segments" }, radios.map((entry) => entry.label))),
    extra,
    leave.node,
    about,
  );
  const show = () => {
    leave.show();
    name.value = store.me;
    for (const { radio } of radios) radio.checked = radio.value === theme();
    popover.querySelector(".settings-name").hidden = store.readOnly;
    about.textContent = `Agent Task Board ${store.version} · times in ${store.timezone}`;
  };
  popover.addEventListener("beforetoggle", show);
  document.addEventListener("theme", show);
  return popover;
}

/** The header button that switches between the light and the dark theme. */
export function themeButton() {
  const button = h("button", { class: "button button-quiet button-icon", type: "button" });
  const show = () => {
    const label = isDark() ? "Switch to light theme" : "Switch to dark theme";
    button.replaceChildren(icon(isDark() ? "sun" : "moon"));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  document.addEventListener("theme", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  return button;
}
