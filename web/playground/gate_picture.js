/** The gates of a text as pictures. */
import { fill, h, number, short } from "../shared/dom.js";
import { Heatmap } from "../shared/heatmap.js";

/** The gates along the words: summaries first, each unit on demand. */
export class GatePicture {
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
