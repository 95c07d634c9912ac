/** A model as its server has it: versions, signatures, card, checks, rates, and how to ask it. */
import { Chart } from "../shared/charts.js";
import { fill, h, number, percent, short, table } from "../shared/dom.js";
import { metrics } from "./api.js";
import { dims, goldenRows, kindOf } from "./model.js";
import { quantile, readModel } from "./rates.js";
import { snippets } from "./snippets.js";
import { verify } from "./verify.js";

const PERIOD = 2000;
const KEPT = 90;

export class ModelView {
  constructor({ model, entry, target, server, asked, tell }) {
    Object.assign(this, { model, entry, target, server, asked, tell, readings: [] });
    this.element = h("div", {}, h("div", { class: "columns" }, this.#versions(), model ? this.#check() : null),
      model ? [this.#requests(), server.metrics_path ? this.#rates() : this.#noRates(), this.#signatures(), this.#card()] : null);
  }

  start() {
    if (this.server.metrics_path && this.model) this.#poll();
  }

  close() {
    clearTimeout(this.timer);
    this.closed = true;
    this.latency?.remove();
    this.rate?.remove();
  }

  #versions() {
    const rows = this.entry.versions.map((version) => [String(version.version), h("span", { class: version.state === "AVAILABLE" ? "good" : version.error ? "bad" : null }, version.state), version.labels.join(", ") || "–", short(version.error, 300) || "–"]);
    const runtimes = Object.entries(this.server.runtimes ?? {}).map(([name, version]) => `${name} ${version}`).join(", ");
    return h("section", { class: "card" }, h("h2", {}, "Versions"),
      rows.length ? table(`Versions of ${this.entry.name}`, ["version", "state", "labels", "error"], rows, { numeric: false }) : h("p", {}, "There is no version yet."),
      h("dl", { class: "facts" }, h("dt", {}, "runtime"), h("dd", {}, runtimes || "–"),
        h("dt", {}, "base path"), h("dd", {}, this.entry.base_path),
        h("dt", {}, "batching"), h("dd", {}, this.server.batching ? "on" : "off")));
  }

  #check() {
    const { golden } = this.model;
    const result = h("div", { "aria-live": "polite" });
    const button = h("button", { type: "button", class: "strong", disabled: !golden.length, onclick: async () => {
      button.disabled = true;
      try {
        const found = await verify(this.target, golden, (done) => fill(result, h("p", {}, `${done} of ${golden.length} requests …`)));
        fill(result, found.wrong.length
          ? [h("p", { class: "bad" }, `${found.wrong.length} outputs are not as at export.`), h("ul", {}, found.wrong.slice(0, 20).map((line) => h("li", {}, line)))]
          : h("p", { class: "good" }, `All ${found.requests} requests (${found.rows} rows) are answered as at export; the largest difference is ${number(found.largest, 2)}.`));
        this.tell(null);
      } catch (error) {
        fill(result);
        this.tell(error);
      }
      button.disabled = false;
    } }, "Ask the golden requests");
    return h("section", { class: "card" }, h("h2", {}, "Does it answer as at export?"),
      h("p", { class: "soft" }, golden.length ? `This version brought ${golden.length} golden requests with the answers of the Keras model. The page asks them again and compares to 0.00001.` : "This version brought no golden requests."),
      button, result);
  }

  #requests() {
    const request = this.asked.request ?? this.#goldenRequest();
    if (!request) return null;
    const found = snippets({ target: this.target, ...request, server: this.server, origin: location.origin });
    const code = h("pre", { id: "snippet", tabindex: "0", role: "tabpanel", "aria-label": "Request" });
    const copy = h("button", { type: "button", class: "quiet", onclick: async () => {
      await navigator.clipboard?.writeText(code.textContent).catch(() => {});
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    } }, "Copy");
    const tabs = Object.keys(found).map((name) => h("button", { type: "button", role: "tab", "aria-controls": "snippet", onclick: () => show(name), onkeydown: (event) => move(event) }, name));
    const show = (name) => {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", tab.textContent === name);
        tab.tabIndex = tab.textContent === name ? 0 : -1;
      }
      code.textContent = found[name];
    };
    const move = (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const to = tabs[(tabs.indexOf(event.target) + by + tabs.length) % tabs.length];
      show(to.textContent);
      to.focus();
    };
    show(Object.keys(found)[0]);
    return h("section", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, "Ask it from a program"), copy),
      h("p", { class: "soft small" }, this.asked.request ? `With what was last asked on the ${kindOf(this.model.signatures) === "text" ? "Text" : "Forecast"} page.` : "With its first golden request.", this.server.tokens ? " $TOKEN stands for your token." : ""),
      h("div", { class: "tablist", role: "tablist", "aria-label": "Languages" }, tabs), code);
  }

  #goldenRequest() {
    const asked = this.model.golden.filter((one) => one.inputs);
    // The golden requests hold the empty text and missing values too.
    const request = asked.find((one) => Object.values(one.inputs).flat(Infinity).every((value) => value !== "" && !Number.isNaN(value))) ?? asked[0];
    if (!request) return null;
    return { signature: request.signature_name, inputs: Object.fromEntries(Object.keys(request.inputs).map((name) => [name, [goldenRows([request], request.signature_name, name)[0].row]])) };
  }

  #rates() {
    this.tiles = h("div", { class: "tiles" });
    this.rate = new Chart({ title: "Requests per second", height: 150, xLabel: (x) => `${x} s`, y: (low, high) => [0, Math.max(1, high * 1.1 || 1)] });
    this.latency = new Chart({ title: "Latency in milliseconds", height: 150, xLabel: (x) => `${x} s`, y: (low, high) => [0, Math.max(1, high * 1.1 || 1)] });
    return h("section", { class: "card" }, h("h2", {}, "Live"), this.tiles, h("div", { class: "columns" }, this.rate.element, this.latency.element));
  }

  #noRates() {
    return h("section", { class: "card" }, h("h2", {}, "Live"), h("p", { class: "soft" }, "Rates and latencies need the server's metrics: start it with --monitoring_config_file."));
  }

  async #poll() {
    if (!document.hidden) {
      try {
        const reading = readModel(await metrics(this.server.metrics_path), this.entry.name);
        this.readings.push({ ...reading, at: performance.now() });
        this.readings.splice(0, Math.max(0, this.readings.length - KEPT));
        this.#showRates();
      } catch (error) {
        if (!this.closed) this.tell(error);
      }
    }
    if (!this.closed) this.timer = setTimeout(() => this.#poll(), PERIOD);
  }

  #showRates() {
    const all = this.readings;
    const now = all.at(-1);
    const steps = all.slice(1).map((after, i) => ({
      at: Math.round((after.at - now.at) / 1000), rate: (after.all - all[i].all) / ((after.at - all[i].at) / 1000),
      median: quantile(all[i], after, 0.5), slow: quantile(all[i], after, 0.95) }));
    const tile = (value, name) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, name));
    const ms = (value) => (value === null ? "–" : `${number(value, 2)} ms`);
    fill(this.tiles, tile(number(now.all), "requests since the start"), tile(percent(now.all ? now.failed / now.all : 0), "of them failed"),
      tile(ms(quantile(null, now, 0.5)), "median latency"), tile(ms(quantile(null, now, 0.95)), "95 % are faster"));
    const x = steps.map((step) => step.at);
    this.rate.update(x, [{ label: "requests", values: steps.map((step) => step.rate), colour: 0 }]);
    this.latency.update(x, [{ label: "median", values: steps.map((step) => step.median), colour: 0, points: true }, { label: "95 %", values: steps.map((step) => step.slow), colour: 1, points: true }]);
  }

  #signatures() {
    const shape = (info) => { const found = dims(info); return found ? `(${found.map((size) => (size < 0 ? "any" : size)).join(", ")})` : "any shape"; };
    const rows = Object.entries(this.model.signatures).flatMap(([name, signature]) => [
      ...Object.entries(signature.inputs).map(([alias, info]) => [name, "input", alias, info.dtype.replace("DT_", "").toLowerCase(), shape(info)]),
      ...Object.entries(signature.outputs).map(([alias, info]) => [name, "output", alias, info.dtype.replace("DT_", "").toLowerCase(), shape(info)])]);
    return h("section", { class: "card" }, h("h2", {}, "Signatures"), table("Inputs and outputs", ["signature", "direction", "name", "type", "shape"], rows, { numeric: false }));
  }

  #card() {
    const { card } = this.model;
    if (!Object.keys(card).length) return h("section", { class: "card" }, h("h2", {}, "Model card"), h("p", { class: "soft" }, "This version brought none."));
    const isShort = (value) => value === null || typeof value !== "object" || (Array.isArray(value) && value.length <= 12 && value.every((item) => typeof item !== "object"));
    const [plain, nested] = [true, false].map((wanted) => Object.entries(card).filter(([, value]) => isShort(value) === wanted));
    return h("section", { class: "card" }, h("h2", {}, "Model card"), figures(card.metrics?.model), facts(Object.fromEntries(plain)),
      nested.map(([name, value]) => h("details", {}, h("summary", {}, name.replaceAll("_", " ")), nestedFacts(value))));
  }
}

/** The measures of each part of the data, where the card has them. */
function figures(model) {
  const parts = Object.entries(model ?? {}).filter(([, values]) => values && typeof values === "object");
  const names = Object.entries(parts[0]?.[1] ?? {}).filter(([, value]) => typeof value === "number").map(([name]) => name);
  if (!names.length) return null;
  return table("Figures of the model", ["rows", ...names.map((name) => name.replaceAll("_", " "))], parts.map(([part, values]) => [part, ...names.map((name) => number(values[name]))]));
}

const shown = (value) => (Array.isArray(value) ? value.map(shown).join(", ") : typeof value === "number" ? number(value) : value === null ? "–" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
const facts = (values) => h("dl", { class: "facts" }, Object.entries(values).map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, shown(value))]));

/** Lists and objects within each other, cut where they are long. */
function nestedFacts(value, depth = 0) {
  if (Array.isArray(value)) {
    if (value.every((item) => item === null || typeof item !== "object")) return h("p", {}, value.slice(0, 200).map(shown).join(", "), value.length > 200 ? `, … (${value.length})` : "");
    return h("p", { class: "mono" }, short(JSON.stringify(value), 1500));
  }
  const entries = Object.entries(value);
  return h("dl", { class: "facts" }, entries.slice(0, 100).map(([name, item]) => [h("dt", {}, name.replaceAll("_", " ")),
    h("dd", {}, item !== null && typeof item === "object" ? (depth < 4 ? nestedFacts(item, depth + 1) : short(JSON.stringify(item), 300)) : shown(item))]),
  entries.length > 100 ? [h("dt", {}, "…"), h("dd", {}, `${entries.length - 100} more`)] : null);
}
