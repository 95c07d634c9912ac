/** A trace as a page: every number, its equation with the inputs put in, and the network to change. */
import { fill, h } from "../shared/dom.js";
import { themeButton } from "../shared/theme.js";
import { trace, weights } from "./engine.js";
import { put, stepLines, totalInputs } from "./lines.js";

const data = JSON.parse(document.getElementById("data").textContent);
const SYMBOLS = { W_out: "V", b_out: "b_y" };
const GATE_NAMES = { z: "update gate", r: "reset gate", g: "candidate", out: "output layer" };
const symbol = (name) => SYMBOLS[name] ?? name.replace("c_", "b′_");
const fresh = () => structuredClone(data.network);

let network = fresh();
let found = null;
let decimals = 4;
let changed = false;
let chosen = null; // The last number looked at: {name, step, i, j}.
let cells = new Map();

const page = document.getElementById("page");
const main = h("div");
const detail = h("aside", { class: "detail", "aria-live": "polite", "aria-label": "The number chosen" });
const problem = h("p", { class: "alert", role: "alert", hidden: true });
const undo = h("button", { type: "button", disabled: true, onclick: () => { network = fresh(); changed = false; draw(); } }, "Back to the network as given");
const json = h("pre", { id: "json", tabindex: "0" });
const jsonBox = h("details", { ontoggle: () => showJson() }, h("summary", {}, "All numbers, unrounded, as JSON"), json);

function start() {
  const places = h("input", { id: "decimals", type: "number", min: 1, max: 12, value: decimals, onchange: () => { decimals = Math.min(12, Math.max(1, Number(places.value) || 4)); draw(); } });
  fill(page,
    h("header", { class: "head" }, h("div", {}, h("h1", {}, data.title), h("p", { class: "soft" }, data.section)),
      h("div", { class: "row noprint" }, h("label", { class: "small" }, "Decimals", places), undo, themeButton())),
    problem, main, claims(), h("section", { class: "card" }, jsonBox), detail);
  let pointed = null;
  // Not pointerover: where the arrow keys scroll the page, other numbers come under a pointer at rest.
  page.addEventListener("pointermove", (event) => {
    const element = event.target.closest?.("[data-name]");
    if (element !== pointed) look(element);
    pointed = element;
  });
  page.addEventListener("focusin", (event) => look(event.target.closest?.("[data-name]")));
  page.addEventListener("keydown", walk);
  draw();
  fill(detail, h("p", { class: "soft" }, "Point at a number, or go to it with Tab and the arrow keys: its equation stands here, with its own inputs put in."));
}

/** Compute and show everything anew. */
function draw() {
  try {
    found = trace(network);
    const numbers = JSON.stringify(found, (key, value) => (typeof value === "number" && !Number.isFinite(value) ? "overflow" : value));
    if (numbers.includes('"overflow"')) throw new Error("A number is no longer finite: the weights or inputs are too large.");
    problem.hidden = true;
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
    return;
  }
  undo.disabled = !changed;
  cells = new Map();
  const lines = stepLines(network);
  const focused = document.activeElement?.id;
  fill(main, overview(), settings(),
    steps("Forward, step by step", "forward", lines),
    network.targets.length ? steps("Backward: read it from right to left", "backward", lines) : null,
    totals());
  if (focused) document.getElementById(focused)?.focus();
  showJson();
  if (chosen) tell(chosen);
}

const shown = (value) => `${Number(value.toFixed(decimals)) + 0 < 0 ? "−" : ""}${Math.abs(value).toFixed(decimals)}`;
const title = (t) => (network.tokens[t] ? `step ${t} “${network.tokens[t]}”` : `step ${t}`);

/** A number that can be looked at. */
function cell(value, name, step, i, j) {
  const verdict = changed ? null : verdictOf(name, step, i, j);
  const key = [name, step, i, j].join();
  const element = h("td", { class: `number n ${verdict ? verdict.status.split(" ")[0] : ""}`, tabindex: "-1", "data-name": name, "data-step": step, "data-i": i, "data-j": j, id: `n-${key.replaceAll(",", "-")}` }, shown(value));
  cells.set(key, element);
  return element;
}

/** A number that can be changed. */
function field(label, value, set) {
  const id = `f-${label.replace(/[^\w]+/g, "-")}`;
  return h("input", { type: "number", step: "any", value, id, "aria-label": label, class: "edit", onchange: (event) => {
    const number = Number(event.target.value);
    if (event.target.value === "" || !Number.isFinite(number)) { event.target.value = value; return; }
    set(number);
    changed = true;
    draw();
  } });
}

function matrixFields(name, rows, transposed = false) {
  const isVector = !Array.isArray(rows[0]);
  const grid = isVector ? [rows] : rows;
  return h("figure", { class: "matrix" }, h("figcaption", { class: "mono" }, symbol(name)), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": symbol(name) }, h("table", {}, h("tbody", {}, grid.map((row, i) => h("tr", {}, row.map((value, j) =>
    h("td", {}, field(isVector ? `${symbol(name)}[${j}]` : `${symbol(name)}[${i}, ${j}]`, value, (number) => (row[j] = number))))))))));
}

function settings() {
  const choice = (id, label, options, value, set) => h("label", { for: id }, label, h("select", { id, onchange: (event) => { set(event.target.value); changed = true; draw(); } }, options.map(([key, name]) => h("option", { value: key, selected: key === value }, name))));
  const zeros = (vector) => vector.every((value) => value === 0);
  return h("section", { class: "card" }, h("h2", {}, "The network: change any number, and everything is computed anew"),
    h("div", { class: "fields" },
      choice("update-gate", "Update gate", [["keep", "keeps: h′ = z⊙h + (1−z)⊙g (4a)"], ["replace", "replaces: h′ = (1−z)⊙h + z⊙g (4b)"]], network.update_gate, (value) => (network.update_gate = value)),
      choice("reset-after", "Reset gate", [["", "before the matmul (3b)"], ["true", "after the matmul (3a)"]], network.reset_after ? "true" : "", (value) => { network.reset_after = value === "true"; if (!network.reset_after) for (const k of "zrg") network.recurrent_bias[k] = network.recurrent_bias[k].map(() => 0); }),
      network.learning_rate === null ? null : h("label", { for: "f-learning-rate" }, "Learning rate", field("learning rate", network.learning_rate, (number) => (network.learning_rate = number))),
      network.targets.length ? choice("reduction", "Losses of the steps", [["sum", "sum"], ["mean", "mean"]], network.reduction, (value) => (network.reduction = value)) : null),
    h("details", { open: settings.open ?? true, ontoggle: (event) => (settings.open = event.target.open) }, h("summary", {}, "Weights, inputs, targets"),
      h("div", { class: "gates" }, ["z", "r", "g"].map((k) => h("div", {}, h("h3", {}, GATE_NAMES[k]), h("div", { class: "matrices" }, matrixFields(`W_${k}`, network.kernel[k]), matrixFields(`U_${k}`, network.recurrent_kernel[k]), matrixFields(`b_${k}`, network.bias[k]), network.reset_after ? matrixFields(`c_${k}`, network.recurrent_bias[k]) : null))),
        network.output_kernel ? h("div", {}, h("h3", {}, GATE_NAMES.out), h("div", { class: "matrices" }, matrixFields("W_out", network.output_kernel), matrixFields("b_out", network.output_bias))) : null,
        h("div", {}, h("h3", {}, "Inputs, initial state, targets"),
          h("div", { class: "matrices" }, matrixFields("x", network.inputs), matrixFields("h_0", network.initial_state), network.targets.map((target, t) => (target ? matrixFields(`t of step ${t}`, target) : null)))))),
    h("p", { class: "soft small" }, "Vectors are rows: W is (inputs, units), U (units, units)."));
}

/** The unrolled network: a box for each step, its gates as bars, the state handed on. */
function overview() {
  const bar = (value, colour, label) => {
    const inner = h("span");
    inner.style.width = `${100 * Math.min(1, Math.max(0, value))}%`;
    inner.style.background = `var(--${colour})`;
    return h("span", { class: "mini" }, h("span", { class: "mono" }, label), h("span", { class: "rail" }, inner), h("span", { class: "mono" }, value.toFixed(2)));
  };
  const signed = (values) => values.map((value) => h("span", { class: value < 0 ? "away" : "towards" }, shown(value)));
  return h("section", { class: "card" }, h("h2", {}, "The unrolled network"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Steps from left to right" }, h("ol", { class: "unrolled" },
      h("li", { class: "state" }, h("b", {}, "h₀"), signed(network.initial_state)),
      found.steps.map((step, t) => [
        h("li", { class: "arrow", "aria-hidden": "true" }, "→"),
        h("li", { class: "cell" }, h("b", {}, title(t)),
          h("span", { class: "soft small" }, `x = (${step.x.map(put).join(", ")})`),
          h("span", { class: "bars" }, step.z.slice(0, 8).map((value, u) => h("span", { class: "pair" }, bar(value, "c1", `z${u}`), bar(step.r[u], "c2", `r${u}`)))),
          step.y ? h("span", { class: "small" }, network.targets[t] ? `loss ${shown(step.loss)}` : "", h("br"), `y = (${step.y.map(shown).join(", ")})`) : null),
        h("li", { class: "arrow", "aria-hidden": "true" }, "→"),
        h("li", { class: "state" }, h("b", {}, `h${["₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"][t] ?? ` ${t + 1}`}`), signed(step.h_new))]))),
    "loss" in found.totals ? h("p", {}, "Loss of the sequence, ", h("b", {}, shown(found.totals.loss)), ` (the ${network.reduction} of its steps; (17)).`) : null);
}

function steps(heading, part, lines) {
  const rows = lines.filter((line) => line.part === part && found.steps.some((step) => line.name in step));
  return h("section", { class: "card" }, h("h2", {}, heading),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": heading }, h("table", { class: "steps" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "equation"), h("th", { scope: "col" }, "quantity"), found.steps.map((step, t) => h("th", { scope: "colgroup", colspan: Math.max(...rows.map((line) => [].concat(step[line.name] ?? [0]).length)), class: "step" }, title(t))))),
      h("tbody", {}, rows.map((line) => h("tr", { class: ["h_new", "dh_new", "dh", "loss"].includes(line.name) ? "strong" : null },
        h("td", { class: "soft" }, line.eq ? `(${line.eq})` : ""), h("th", { scope: "row" }, h("span", { class: "what" }, line.label), h("span", { class: "mono soft" }, line.formula)),
        found.steps.map((step, t) => {
          const width = Math.max(...rows.map((one) => [].concat(step[one.name] ?? [0]).length));
          const values = step[line.name] === undefined ? [] : [].concat(step[line.name]);
          return [values.map((value, i) => cell(value, line.name, t, i)), Array.from({ length: width - values.length }, () => h("td"))];
        })))))));
}

function totals() {
  if (!network.targets.length) return null;
  const matrix = (name) => {
    const value = found.totals[name];
    if (value === undefined) return null;
    const vector = !Array.isArray(value[0]);
    const grid = vector ? [value] : value;
    return h("figure", { class: "matrix" }, h("figcaption", { class: "mono" }, name.startsWith("new_") ? `new ${symbol(name.slice(4))} (21)` : `δ${symbol(name.slice(1))} (${name.endsWith("_out") ? 19 : 15})`),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, h("table", {}, h("tbody", {}, grid.map((row, i) => h("tr", {}, row.map((one, j) => (vector ? cell(one, name, "total", j) : cell(one, name, "total", i, j)))))))));
  };
  const groups = ["z", "r", "g", "out"].map((k) => [k, Object.keys(weights(network)).filter((name) => name.endsWith(`_${k}`))]).filter(([, names]) => names.length);
  return h("section", { class: "card" }, h("h2", {}, network.learning_rate === null ? "Gradients of the weights, summed over the steps" : "Gradients of the weights, and the update"),
    h("div", { class: "gates" }, groups.map(([k, names]) => h("div", {}, h("h3", {}, GATE_NAMES[k]), h("div", { class: "matrices" }, names.flatMap((name) => [matrix(`d${name}`), matrix(`new_${name}`)]))))));
}

/** The text's own number for this one, if it prints it. */
function verdictOf(name, step, i, j) {
  for (const claim of data.claims) {
    if (claim.name !== name || (claim.step ?? "total") !== step) continue;
    let value = claim.printed;
    const place = claim.transposed ? [j, i] : [i, j];
    if (claim.index.length) {
      if (claim.index.some((at, k) => at !== place[k])) continue;
      for (const at of place.slice(claim.index.length)) if (at !== undefined) value = value?.[at];
    } else for (const at of place) if (at !== undefined) value = Array.isArray(value) ? value[at] : value;
    if (typeof value === "number") return { ...claim, value };
  }
  return null;
}

function look(element) {
  if (!element) return;
  const { name, step, i, j } = element.dataset;
  tell({ name, step: step === "total" ? step : Number(step), i: Number(i), j: j === undefined ? undefined : Number(j) });
}

function tell(at) {
  const { name, step, i, j } = at;
  const element = cells.get([name, step, i, j].join());
  if (!element) return;
  for (const old of page.querySelectorAll(".chosen")) old.classList.remove("chosen");
  element.classList.add("chosen");
  chosen = at;
  let of;
  let value;
  if (step === "total") {
    value = j === undefined ? found.totals[name][i] : found.totals[name][i][j];
    of = totalInputs(network, found, weights(network), name, i, j);
    of.label = name.startsWith("new_") ? `new ${symbol(name.slice(4))}` : `δ${symbol(name.slice(1))}`;
  } else {
    const line = stepLines(network).find((one) => one.name === name);
    value = [].concat(found.steps[step][name])[i];
    of = { ...line, text: line.inputs(found.steps[step], i) };
  }
  const place = `${name === "loss" ? "" : j === undefined ? `[${i}]` : `[${i}, ${j}]`}`;
  const verdict = changed ? null : verdictOf(name, step, i, j);
  fill(detail, h("p", {}, h("b", {}, `${of.label}${place}`), step === "total" ? "" : `, ${title(step)}`, of.eq ? h("span", { class: "soft" }, `  equation (${of.eq})`) : "", " ", h("span", { class: "mono soft" }, of.formula)),
    h("p", { class: "mono formula" }, `= ${of.text}`, of.text === put(value) ? "" : ` = ${Number(value.toPrecision(10)).toString().replace("-", "−")}`),
    verdict ? h("p", { class: verdict.status === "agrees" ? "good" : verdict.status === "differs" ? "bad" : "" }, `The text prints ${String(verdict.value).replace("-", "−")} (${verdict.where}): ${verdict.status}.`, verdict.cause ? ` ${verdict.cause}` : "") : null);
}

/** Arrow keys go from number to number; Tab comes back to the last one. */
function walk(event) {
  const from = event.target.closest?.(".n");
  const to = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
  const down = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
  if (!from || !(to || down)) return;
  event.preventDefault();
  let next = to ? from[to] : from.parentElement[down]?.cells[from.cellIndex];
  while (next && !next.matches(".n")) next = to ? next[to] : next.parentElement[down]?.cells[from.cellIndex];
  if (!next) return;
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function claims() {
  if (!data.verdicts.length) return null;
  const count = (status) => data.verdicts.filter((one) => one.status === status).length;
  return h("section", { class: "card" }, h("h2", {}, "The text's own numbers"),
    h("p", {}, `${data.verdicts.length} printed numbers and calculations: `, h("b", { class: "good" }, `${count("agrees")} agree`), `, ${count("rounding carried")} carry the rounding of a line before, `, h("b", { class: count("differs") ? "bad" : "good" }, `${count("differs")} differ`), ". Where the text prints a number of this page, it is underlined above."),
    data.errata.map((one) => h("div", { class: "erratum" }, h("h3", {}, one.id, one.kind ? ` (${one.kind})` : ""), h("p", {}, one.cause))),
    h("details", {}, h("summary", {}, "All of them"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Printed numbers" }, h("table", {}, h("thead", {}, h("tr", {}, ["where", "quantity", "printed", "computed", "verdict"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, data.verdicts.map((one) => h("tr", {}, h("td", {}, one.where), h("td", { class: "mono" }, one.quantity), h("td", {}, one.printed), h("td", {}, one.computed), h("td", { class: one.status === "agrees" ? "good" : one.status === "differs" ? "bad" : null }, one.status, one.erratum ? `, ${one.erratum}` : ""))))))));
}

function showJson() {
  if (jsonBox.open) json.textContent = JSON.stringify(found);
}

start();
page.querySelector(".n")?.setAttribute("tabindex", "0");
