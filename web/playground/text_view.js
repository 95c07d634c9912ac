/** A text, and what the model makes of it: as you type, word by word, gate by gate. */
import { Chart } from "../shared/charts.js";
import { fill, h, number, percent, short } from "../shared/dom.js";
import { Newest, predict } from "./api.js";
import { GatePicture } from "./gate_picture.js";
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
    this.attributing = new Newest();
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
        if (this.model.signatures.attribution) this.attributing.run(() => this.#attribute(text));
      } catch (error) {
        this.#showWords(null);
        this.tell(error);
      }
    });
  }

  /** Marks the words by their share in the answer; until that is there, by what they changed. */
  async #attribute(text) {
    if (this.text.value !== text) return;
    const inputs = Object.keys(this.model.signatures.attribution.inputs).map((name) => [name, [name === "label" ? "" : text]]);
    const due = await predict(this.target, "attribution", Object.fromEntries(inputs)).catch(() => null);
    if (!due || !this.words || this.text.value !== text) return;
    this.#mark(due.attribution[0], "the share that each word has in the answer", due.label?.[0]);
  }

  /** Colours the words by numbers, which are for a class: the one named, or the likeliest. */
  #mark(marks, by, label) {
    const names = classNames(this.model.card, this.words.scores[0]?.length ?? 0);
    this.marks = marks;
    const most = Math.max(1e-9, ...this.spans.map((_, i) => Math.abs(marks[i])));
    this.legend.textContent = `Marked by ${by} ${label ?? names[this.cls] ?? ""}: blue towards it, orange away from it.`;
    this.spans.forEach((span, i) => {
      span.classList.toggle("towards", marks[i] >= 0);
      span.classList.toggle("away", marks[i] < 0);
      span.style.setProperty("--share", `${Math.round((45 * Math.abs(marks[i])) / most)}%`);
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
    const spans = tokens.map((token, i) => h("span", { "data-i": i }, token));
    const parts = [];
    for (let from = 0; from < spans.length; from += PART) parts.push(h("span", { class: "part" }, spans.slice(from, from + PART).flatMap((span) => [span, " "])));
    this.spans = spans;
    fill(this.wordBox, parts);
    this.#mark(scores.map((row, i) => row[this.cls] - (scores[i - 1]?.[this.cls] ?? (row.length > 1 ? 1 / row.length : row[0]))), "what each word changed in the answer");
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
