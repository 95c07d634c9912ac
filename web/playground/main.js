/** The playground: what a server's models answer, to look at. */
import { fill, h } from "../shared/dom.js";
import { themeButton } from "../shared/theme.js";
import * as api from "./api.js";
import { ForecastView } from "./forecast_view.js";
import { kindOf, loadModel, targets } from "./model.js";
import { ModelView } from "./model_view.js";
import { TextView } from "./text_view.js";

const VIEWS = { text: ["Text", TextView], forecast: ["Forecast", ForecastView], model: ["Model", ModelView] };
const page = document.getElementById("page");
const alertBox = h("div", { class: "alert", role: "alert", hidden: true });
const place = h("div");
const modelPicker = h("select", { id: "model", onchange: () => go({ model: modelPicker.value, version: "", view: "" }) });
const versionPicker = h("select", { id: "version", onchange: () => go({ version: versionPicker.value }) });
const tabs = h("nav", { class: "tabs", "aria-label": "Views" });
const input = {}; // What the views of a model last asked, for the examples of requests.
let server = {};
let listing = [];
let view = null;
let opening = 0;

function state() {
  const found = new URLSearchParams(location.hash.slice(1));
  return { model: found.get("model") ?? "", version: found.get("version") ?? "", view: found.get("view") ?? "" };
}

function go(change) {
  location.hash = new URLSearchParams({ ...state(), ...change }).toString();
}

/** Show an error in words; null clears it. */
export function tell(error) {
  alertBox.hidden = !error;
  alertBox.textContent = error ? error.message : "";
}

async function start() {
  fill(page,
    h("header", { class: "top" },
      h("div", { class: "row" }, h("h1", {}, "Playground"),
        h("label", {}, "Model", modelPicker), h("label", {}, "Version", versionPicker)),
      h("div", { class: "row" }, tabs, themeButton())),
    h("main", { id: "content", tabindex: "-1" }, alertBox, place));
  fill(place, h("p", { class: "soft" }, "Asking the server …"));
  api.onTokenWanted(askForToken);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("content").focus();
  });
  addEventListener("hashchange", () => open().catch(tell));
  try {
    server = await api.server();
    await open();
  } catch (error) {
    fill(place, h("p", {}, "Nothing to show yet. ", h("button", { type: "button", onclick: () => location.reload() }, "Try again")));
    tell(error);
  }
}

async function open() {
  const mine = ++opening;
  listing = await api.models();
  const serving = listing.filter((one) => one.versions.some((version) => version.state === "AVAILABLE"));
  const wanted = state();
  const chosen = listing.find((one) => one.name === wanted.model) ?? serving[0] ?? listing[0];
  if (!chosen) {
    fill(place, h("p", { class: "card" }, "This server has no model."));
    return;
  }
  fill(modelPicker, listing.map((one) => h("option", { value: one.name, selected: one === chosen }, one.name)));
  const choices = targets(chosen);
  const target = choices.find((one) => one.id === wanted.version) ?? choices[0];
  fill(versionPicker, choices.map((one) => h("option", { value: one.id, selected: one === target }, one.name)));
  const model = target ? await loadModel(target) : null;
  if (mine !== opening) return;
  const kind = model ? kindOf(model.signatures) : "";
  const offered = [...(kind ? [kind] : []), "model"];
  const name = offered.includes(wanted.view) ? wanted.view : offered[0];
  fill(tabs, offered.map((one) => h("a", { href: `#${new URLSearchParams({ model: chosen.name, version: target?.id ?? "", view: one })}`, "aria-current": one === name ? "page" : null }, VIEWS[one][0])));
  document.title = `${chosen.name} · ${VIEWS[name][0]} · Playground`;
  view?.close?.();
  tell(null);
  const asked = (input[chosen.name] ??= {});
  view = new VIEWS[name][1]({ model, listing, entry: chosen, choices, target, server, asked, tell });
  fill(place, view.element);
  view.start?.();
}

function askForToken(again) {
  const field = h("input", { type: "password", autocomplete: "off", id: "token", required: true, spellcheck: "false" });
  const dialog = h("dialog", { "aria-labelledby": "token-title" },
    h("form", { method: "dialog", onsubmit: () => dialog.close(field.value.trim()) },
      h("h2", { id: "token-title" }, "This server wants a token"),
      h("p", {}, again ? "It did not accept that one. " : "", "It stays in the memory of this page, and is gone when you close or reload it."),
      h("p", {}, h("label", { for: "token" }, "Token"), field),
      h("div", { class: "row" }, h("button", { class: "strong" }, "Use it"),
        h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(/^[\x21-\x7e]*$/.test(dialog.returnValue) ? dialog.returnValue : "");
    });
  });
}

start();
