/** Light and dark: as the system has it, until the reader chooses. */
import { h } from "./dom.js";

const ORDER = ["auto", "light", "dark"];
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const listeners = new Set();
let chosen = "auto";

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);

function tell() {
  for (const listener of listeners) listener();
}

/** Call this whenever colours change; returns what ends it. */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function themeButton() {
  const button = h("button", { type: "button", class: "quiet", onclick: next }, NAMES[chosen]);
  function next() {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    button.textContent = NAMES[chosen];
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    tell();
  }
  return button;
}

/** The present value of a colour of theme.css. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const SERIES = 8;

/** The colour of the n-th of several things. */
export function seriesColour(n) {
  return colour(`c${(n % SERIES) + 1}`);
}
