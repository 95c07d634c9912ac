/** A text, and what the model makes of it: as you type, word by word, gate by gate. */
import { Chart } from "../shared/charts.js";
import { fill, h, number, percent, short } from "../shared/dom.js";
import { Heatmap } from "../shared/heatmap.js";
import { Newest, predict } from "./api.js";
import { classNames, goldenRows, loadModel, textInput } from "./model.js";
import { readWords } from "./words.js";

const EXAMPLES = 8;
const SHOWN_CLASSES = 8;
const AT_ONCE = 6000; // Letters up to which gates follow by themselves.
const PART = 250; // Words laid out together, so that long texts stay quick.
const PAUSE = 120; // Milliseconds without a key before the gates are asked for.

export class TextView {
  constructor({ model, choices, target, asked, tell }) {
    Object.assign(this, { model, choices, target, asked, tell, other: null, words: null, selected: null, cls: null });
    this.name = textInput(model.signatures);
    this.hasGates = Boolean(model.signatures.gates);
    this.answers = new Newest();
    this.reading = new Newest();
    const examples = goldenRows(model.golden, "serving_default", this.name).map((one) => one.row).filter((text) => typeof text === "string" && text.trim());
    this.text = h("textarea", { id: "text", rows: 5, spellcheck: "false", placeholder: "Type a text; the answer follows.", oninput: (event) => this.#typed(event) });
    this.text.value = asked.text ?? examples[0] ?? "";
    this.status = h("p", { class: "soft small status" });
    this.panels = [new AnswerPanel(), new AnswerPanel()];
    const compare = h("select", { id: "compare", onchange: () => this.#compare(compare.value) },
      h("option", { value: "" }, "nothing"), choices.filter((one) => one.id !== target.id).map((one) => h("option", { value: one.id }, one.name)));
    this.chart = new Chart({ title: "The answer after each word", height: 220, xLabel: (i) => this.words ? short(this.words.tokens[i] ?? "", 14) : "", format: (value) => number(value, 3), y: (low, high) => (low >= 0 && high <= 1 ? [0, 1] : [low - 0.05 * (high - low || 1), high + 0.05 * (high - low || 1)]), onSelect: (i) => this.#select(i) });
    this.wordBox = h("div", { class: "words", role: "group", "aria-label": "The words as the model reads them" });
    this.legend = h("p", { class: "soft small" });
    this.readout = h("p", { class: "readout mono", "aria-live": "off" });
    this.gates = this.hasGates ? new GatePicture((i) => this.#select(i)) : null;
    this.more = h("div", { hidden: true }, h("button", { type: "button", onclick: () => this.#read(true) }, "Show words and gates of this long text"));
    this.element = h("div", {}, h("div", { class: "ask" },
      h("section", { class: "card" },
        h("div", { class: "row spread" }, h("h2", {}, h("label", { for: "text" }, "Text")),
          choices.length > 1 ? h("label", { class: "small" }, "Side by side with", compare) : null),
        this.text,
        examples.length ? h("div", { class: "examples", role: "group", "aria-label": "Examples" }, examples.slice(0, EXAMPLES).map((text) =>
          h("button", { type: "button", title: text, onclick: () => this.#use(text) }, short(text, 48)))) : null,
        this.status),
      h("div", { class: "answers" }, this.panels.map((panel) => panel.element))),
      this.hasGates ? h("section", { class: "card" }, h("h2", {}, "Word by word"), this.more, this.wordBox, this.legend, this.readout, this.chart.element) : null,
      this.gates?.element);
    this.panels[1].element.hidden = true;
  }

  start() {
    this.#answer();
    this.#read();
  }

  close() {
    clearTimeout(this.waiting);
    this.chart.remove();
  }

  #use(text) {
    this.text.value = text;
    this.#answer();
    this.#read();
  }

  #typed(event) {
    this.#answer(event.timeStamp);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.#read(), PAUSE);
  }

  #targets() {
    return this.other ? [this.target, this.other.target] : [this.target];
  }

  #answer(pressed) {
    const text = this.text.value;
    this.asked.text = text;
    this.asked.request = { signature: "serving_default", inputs: { [this.name]: [text] } };
    this.answers.run(async () => {
      const began = performance.now();
      try {
        const outputs = await Promise.all(this.#targets().map((target) => predict(target, "serving_default", { [this.name]: [text] })));
        outputs.forEach((one, i) => this.panels[i].show(this.#titles()[i], one, i ? this.other.card : this.model.card));
        const took = performance.now() - began;
        if (pressed) performance.measure("key to answer", { start: pressed, end: performance.now() });
        this.status.textContent = `Answered in ${took.toFixed(took < 10 ? 1 : 0)} ms, over the network and back.`;
        this.tell(null);
      } catch (error) {
        this.status.textContent = "";
        this.tell(error);
      }
    });
  }

  #titles() {
    return this.#targets().map((target) => (target.label ? `${target.label} (version ${target.version})` : `Version ${target.version}`));
  }

  async #compare(id) {
    const target = this.choices.find((one) => one.id === id);
    this.panels[1].element.hidden = !target;
    try {
      this.other = target ? { ...(await loadModel(target)), target } : null;
    } catch (error) {
      this.tell(error);
      return;
    }
    this.start();
  }

  #read(wanted = false) {
    if (!this.hasGates) return;
    const text = this.text.value;
    const long = text.length > AT_ONCE && !wanted;
    this.more.hidden = !long;
    if (long || !text.trim()) {
      this.#showWords(null);
      return;
    }
    this.reading.run(async () => {
      try {
        const found = await Promise.all(this.#targets().map((target, i) =>
          (i && !this.other.signatures.gates ? null : predict(target, "gates", { [Object.keys(this.model.signatures.gates.inputs)[0]]: [text] }))));
        this.#showWords(...found.map((outputs) => outputs && readWords(outputs)));
      } catch (error) {
        this.#showWords(null);
        this.tell(error);
      }
    });
  }

  #showWords(words, others = null) {
    this.words = words;
    this.selected = null;
    this.readout.textContent = words ? "Point at a word for its numbers, or go through them with the arrow keys." : "Nothing to read yet.";
    if (!words) {
      fill(this.wordBox);
      this.chart.update([], []);
      this.gates?.show(null);
      this.legend.textContent = "";
      return;
    }
    const { scores, tokens } = words;
    const names = classNames(this.model.card, scores[0]?.length ?? 0);
    const last = scores.at(-1) ?? [];
    this.cls = last.indexOf(Math.max(...last));
    const marks = words.attribution ?? scores.map((row, i) => row[this.cls] - (scores[i - 1]?.[this.cls] ?? (row.length > 1 ? 1 / row.length : row[0])));
    this.marks = marks;
    const most = Math.max(1e-9, ...marks.map(Math.abs));
    this.legend.textContent = `${words.attribution ? "Marked by their attribution" : "Marked by what each word changed in the answer"} ${names[this.cls] ?? ""}: blue towards it, orange away from it.`;
    const spans = tokens.map((token, i) => {
      const span = h("span", { class: marks[i] >= 0 ? "towards" : "away", "data-i": i }, token);
      span.style.setProperty("--share", `${Math.round((45 * Math.abs(marks[i])) / most)}%`);
      return span;
    });
    const parts = [];
    for (let from = 0; from < spans.length; from += PART) parts.push(h("span", { class: "part" }, spans.slice(from, from + PART).flatMap((span) => [span, " "])));
    this.spans = spans;
    fill(this.wordBox, parts);
    this.wordBox.onpointerover = (event) => event.target.dataset.i !== undefined && this.#select(Number(event.target.dataset.i));
    this.wordBox.onclick = this.wordBox.onpointerover;
    const ranked = names.map((_, k) => k).sort((a, b) => last[b] - last[a]);
    const curves = ranked.slice(0, names.length === 2 ? 2 : 5).sort((a, b) => a - b);
    const series = curves.map((k) => ({ label: names[k], values: scores.map((row) => row[k]), colour: k, width: k === this.cls ? 2.5 : 1.5, points: tokens.length < 60 }));
    if (others && others.tokens.length === tokens.length) {
      const title = this.#titles()[1];
      series.push(...curves.map((k) => ({ label: `${names[k]}, ${title}`, values: others.scores.map((row) => row[k] ?? null), colour: k, width: 1.5, dash: [6, 4] })));
    }
    this.chart.update(tokens.map((_, i) => i), series);
    this.gates?.show(words);
  }

  #select(i) {
    if (!this.words || i === this.selected || i >= this.words.tokens.length) return;
    this.spans[this.selected]?.classList.remove("chosen");
    this.selected = i;
    this.spans[i].classList.add("chosen");
    this.chart.select(i);
    this.gates?.select(i);
    const names = classNames(this.model.card, this.words.scores[i].length);
    const said = this.words.summary.map(({ name, values }) => `${name} ${values[i].toFixed(3)}`);
    this.readout.textContent = `${i + 1} “${short(this.words.tokens[i], 30)}”  ${names[this.cls]} ${names.length > 1 ? percent(this.words.scores[i][this.cls]) : number(this.words.scores[i][this.cls])} (${this.marks[i] < 0 ? "−" : "+"}${Math.abs(this.marks[i]).toFixed(3)})  ${said.join("  ")}`;
  }
}

/** The answer of one version: label, probabilities, and whatever else it says. */
class AnswerPanel {
  constructor() {
    this.heading = h("h2", {}, "Answer");
    this.label = h("p", { class: "answer", "aria-live": "polite" }, " ");
    this.bars = h("ul", { class: "bars" });
    this.rest = h("dl", { class: "facts" });
    this.all = false;
    this.toggle = h("button", { type: "button", class: "quiet small", hidden: true, onclick: () => { this.all = !this.all; this.show(...this.last); } });
    this.element = h("section", { class: "card answer-card" }, this.heading, this.label, this.bars, this.toggle, this.rest);
  }

  show(title, outputs, card) {
    this.last = [title, outputs, card];
    const { label, labels, probability, scores, thresholds, value, quantiles, ...others } = outputs;
    this.heading.textContent = title;
    const row = Array.isArray(scores?.[0]) ? scores[0] : [];
    const several = Array.isArray(labels?.[0]) ? labels[0].filter(Boolean).join(", ") || "no label" : "";
    const estimate = typeof value?.[0] === "number" ? number(value[0]) : "";
    const said = several || estimate || (label?.[0] === undefined ? "" : [].concat(label[0]).join(", "));
    const bounds = estimate && Array.isArray(quantiles?.[0]) ? quantiles[0] : [];
    fill(this.label, said || (row.length ? "" : "–"), probability?.[0] !== undefined && !Array.isArray(probability[0]) ? h("span", { class: "soft" }, ` ${percent(probability[0])}`) : null);
    const names = classNames(card, row.length);
    let order = names.map((_, i) => i);
    const many = row.length > SHOWN_CLASSES;
    if (many) order = order.sort((a, b) => row[b] - row[a]);
    if (many && !this.all) order = order.slice(0, SHOWN_CLASSES);
    this.toggle.hidden = !many;
    this.toggle.textContent = this.all ? "Show the most likely only" : `Show all ${row.length} classes`;
    fill(this.bars, order.map((i) => {
      const bar = h("span");
      bar.style.width = `${100 * Math.min(1, Math.max(0, row[i]))}%`;
      return h("li", {}, h("span", { class: "name", title: names[i] }, names[i]), h("span", { class: "bar", "aria-hidden": "true" }, bar, threshold(thresholds?.[0]?.[i])), h("span", { class: "number" }, percent(row[i])));
    }));
    const intervals = bounds.slice(0, Math.floor(bounds.length / 2)).map((low, i) => `${number(low)} to ${number(bounds.at(-1 - i))}`);
    if (intervals.length) others.intervals = [intervals.join("; ")];
    fill(this.rest, Object.entries(others).map(([name, item]) => [h("dt", {}, name), h("dd", {}, short(typeof item?.[0] === "string" ? item[0] : JSON.stringify(item?.[0] ?? item), 400))]));
  }
}

/** The mark on a bar from which on a label applies. */
function threshold(value) {
  if (typeof value !== "number") return null;
  const mark = h("i", { class: "threshold" });
  mark.style.left = `${100 * Math.min(1, Math.max(0, value))}%`;
  return mark;
}

/** The gates along the words: summaries first, each unit on demand. */
class GatePicture {
  constructor(onSelect) {
    this.summary = new Heatmap({ rowHeight: 22, gap: 6, onHover: (step) => onSelect(step) });
    this.units = new Heatmap({ rowHeight: 5, onHover: (step, row) => { onSelect(step); this.unit = row; this.#say(); } });
    this.labels = h("ul", { class: "strip-labels" });
    this.what = h("select", { id: "gate-what", onchange: () => this.#drawUnits() });
    this.where = h("select", { id: "gate-where", onchange: () => this.#drawUnits() });
    this.readout = h("p", { class: "readout mono" }, "Point at the picture for a unit's numbers.");
    this.details = h("details", { ontoggle: () => this.#drawUnits() }, h("summary", {}, "Each unit"),
      h("div", { class: "row" }, h("label", { class: "small" }, "Show", this.what), h("label", { class: "small" }, "of", this.where)), this.readout, this.units.canvas);
    this.element = h("section", { class: "card" }, h("h2", {}, "What the gates did"),
      h("div", { class: "strips", role: "img", "aria-label": "Mean update gate, mean reset gate and change of the state along the words; the numbers are in the line above as you move" }, this.labels, this.summary.canvas),
      h("div", { class: "scale", "aria-hidden": "true" }, "0", h("span"), "1"),
      h("p", { class: "soft small" }, "An update gate near 1 keeps the state, near 0 writes the word into it. With a reset gate near 0 the candidate ignores what was read before."),
      this.details);
    this.unit = 0;
  }

  show(words) {
    this.words = words;
    const rows = words?.summary ?? [];
    fill(this.labels, rows.map(({ name }) => h("li", {}, name)));
    this.summary.update(rows.map(({ values }) => values));
    const options = (select, names) => {
      const kept = select.selectedIndex;
      fill(select, names.map((name, i) => h("option", { value: i, selected: i === kept }, name)));
    };
    options(this.what, (words?.quantities ?? []).map((one) => one.name));
    options(this.where, words?.places ?? []);
    this.#drawUnits();
  }

  select(i) {
    this.at = i;
    this.summary.select(i);
    if (this.details.open) {
      this.units.select(i);
      this.#say();
    }
  }

  #drawUnits() {
    if (!this.details.open || !this.words) return;
    const quantity = this.words.quantities[Math.max(0, this.what.selectedIndex)];
    const rows = quantity.units(Math.max(0, this.where.selectedIndex));
    this.order = rows.map((_, u) => u).sort((a, b) => mean(rows[a]) - mean(rows[b]));
    this.rows = rows;
    this.units.rowHeight = Math.max(3, Math.min(12, Math.round(420 / rows.length)));
    this.units.update(this.order.map((u) => rows[u]), quantity.range);
  }

  #say() {
    if (!this.rows || this.at === undefined) return;
    const unit = this.order[this.unit] ?? 0;
    this.readout.textContent = `“${short(this.words.tokens[this.at] ?? "", 30)}”  unit ${unit}: ${number(this.rows[unit][this.at], 4)}`;
  }
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
