/** A history, and how the forecast moves when a number in it does. */
import { Chart } from "../shared/charts.js";
import { fill, h, number, short } from "../shared/dom.js";
import { Newest, predict } from "./api.js";
import { readCsv, writeCsv } from "./csv.js";
import { dims, goldenRows } from "./model.js";
import { Times } from "./times.js";

const MOST_STEPS = 20000;
const NEAR = 40; // Pixels from a point within which it is taken.

export class ForecastView {
  constructor({ model, target, asked, tell }) {
    Object.assign(this, { model, target, asked, tell, answers: new Newest(), column: 0, step: null, answer: null, frozen: null });
    const { card } = model;
    const inputs = model.signatures.serving_default.inputs;
    this.names = Array.isArray(card.columns) ? card.columns.map(String) : [];
    this.width = dims(inputs.history)[2];
    if (this.width < 0) this.width = this.names.length || 1;
    this.others = Object.keys(inputs).filter((name) => name !== "history");
    this.golden = goldenRows(model.golden, "serving_default", "history");
    this.state = asked.forecast ?? null;
    this.changed = Boolean(this.state && JSON.stringify(this.state.history) !== JSON.stringify(this.state.original));
    this.#build();
  }

  #build() {
    const { card } = this.model;
    this.columnList = h("datalist", { id: "columns" });
    this.columnPicker = h("input", { id: "column", list: "columns", autocomplete: "off", onchange: () => this.#chooseColumn() });
    this.csv = h("textarea", { id: "csv", rows: 4, spellcheck: "false", class: "mono", placeholder: `time,${this.#columnNames().slice(0, 3).join(",")}\n2024-01-06,421.3\n…` });
    const file = h("input", { type: "file", id: "file", accept: ".csv,.tsv,.txt,text/csv", onchange: async () => file.files[0] && this.#take(await file.files[0].text()) });
    const drop = h("div", { class: "drop" },
      h("label", { for: "csv" }, "Paste a CSV, or drop a file here"), this.csv,
      h("div", { class: "row" }, h("button", { type: "button", class: "strong", onclick: () => this.#take(this.csv.value) }, "Use this table"), h("label", { class: "small", for: "file" }, "or choose a file"), file));
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", async (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      const dropped = event.dataTransfer.files[0];
      this.#take(dropped ? await dropped.text() : event.dataTransfer.getData("text"));
    });
    const gaps = ({ row }) => row.flat().some((value) => !Number.isFinite(value));
    this.golden = [...this.golden.filter((one) => !gaps(one)).slice(0, 4), ...this.golden.filter(gaps).slice(0, 2)];
    this.examples = this.golden.map(({ row }, i) => h("button", { type: "button", onclick: () => this.#useGolden(i) }, `Golden history ${i + 1}${row.flat().some((value) => !Number.isFinite(value)) ? ", with gaps" : ""}`));
    this.chart = new Chart({
      title: "History and forecast", height: 360, xLabel: (i) => this.times?.label(i) ?? "",
      y: (low, high) => this.frozen ?? padded(low, high), onSelect: (i) => this.#select(i),
      note: "Drag a point of the history up or down, or click into a gap to fill it: the forecast follows. Drag along the axis of time to look closer, double-click to see all.",
    });
    this.stepField = h("input", { id: "step", type: "number", min: 1, onchange: () => this.#select(Number(this.stepField.value) - 1, true) });
    this.valueField = h("input", { id: "value", type: "number", step: "any", oninput: () => this.#setValue(this.valueField.value === "" ? null : Number(this.valueField.value)) });
    this.undoButton = h("button", { type: "button", disabled: true, onclick: () => this.#undo() }, "Undo all changes");
    this.status = h("p", { class: "soft small status" });
    this.where = h("span", { class: "soft small" });
    this.extra = h("section", { class: "card", hidden: !this.others.length }, h("h2", {}, "Known beforehand"),
      this.others.map((name) => {
        const field = h("textarea", { id: `input-${name}`, rows: 5, class: "mono", spellcheck: "false", onchange: () => this.#takeExtra(name, field.value) });
        const label = this.#rank(name) === 1 ? (name === "timestamp" ? "timestamp, the time of the last step" : name) : `${name}, one line per step`;
        return h("p", {}, h("label", { for: `input-${name}` }, label), field);
      }));
    this.element = h("div", {},
      h("section", { class: "card" },
        h("div", { class: "row spread" }, h("h2", {}, "Forecast"), h("div", { class: "fields" }, h("label", { for: "column" }, "Column", this.columnPicker), this.columnList)),
        this.chart.element,
        h("div", { class: "fields" }, h("label", { for: "step" }, "Step of the history", this.stepField), h("label", { for: "value" }, "Value, empty for a gap", this.valueField), this.undoButton, this.where),
        this.status,
        h("div", { class: "row" },
          this.saveButton = h("button", { type: "button", disabled: true, onclick: () => this.#download() }, "Forecast as CSV"),
          h("span", { class: "soft small" }, levelsText(card)))),
      this.extra,
      h("section", { class: "card" }, h("h2", {}, "History"),
        this.examples.length ? h("div", { class: "examples", role: "group", "aria-label": "Golden histories" }, this.examples) : null,
        h("p", { class: "soft small" }, [`${this.width.toLocaleString("en-US")} ${this.width === 1 ? "column" : "columns"}`, card.lookback ? `at least ${card.least_steps ?? card.lookback} steps` : "", card.frequency ? `one step every ${card.frequency}` : ""].filter(Boolean).join(", "), ". An empty cell is a gap."),
        drop));
    this.#drag();
  }

  start() {
    if (this.state) this.#show();
    else if (this.golden.length) this.#useGolden(Math.max(0, this.golden.findIndex(({ row }) => row.flat().every(Number.isFinite))));
    else this.status.textContent = "Paste a table below to begin.";
  }

  close() {
    this.chart.remove();
  }

  #columnNames() {
    return this.names.length === this.width ? this.names : Array.from({ length: this.width }, (_, i) => `column ${i + 1}`);
  }

  #useGolden(i) {
    const { row, request, index } = this.golden[i];
    const extras = Object.fromEntries(this.others.map((name) => [name, request.inputs[name]?.[index]]));
    this.#begin(row.map((values) => values.map((value) => (Number.isFinite(value) ? value : null))), null, extras);
  }

  #take(text) {
    try {
      const { names, times, rows } = readCsv(text);
      const columns = this.#columnNames();
      let order = columns.map((_, i) => i);
      if (names && this.names.length) {
        order = columns.map((name) => names.indexOf(name));
        const missing = columns.filter((_, i) => order[i] < 0);
        if (missing.length === columns.length && names.length === columns.length) order = columns.map((_, i) => i);
        else if (missing.length) throw new Error(`The table lacks ${missing.length === 1 ? "the column" : `${missing.length} columns:`} ${missing.slice(0, 5).join(", ")}${missing.length > 5 ? ", …" : ""}.`);
      } else if (rows[0].length !== columns.length) throw new Error(`The table has ${rows[0].length} columns of numbers, expected ${columns.length}.`);
      const cut = Math.max(0, rows.length - MOST_STEPS);
      this.#begin(rows.slice(cut).map((row) => order.map((k) => row[k])), times?.slice(cut) ?? null, this.#withTime(times));
    } catch (error) {
      this.tell(error);
    }
  }

  #rank(name) {
    return dims(this.model.signatures.serving_default.inputs[name])?.length ?? 3;
  }

  /** What is known beforehand, with the time of the last step of a table where the model reads it. */
  #withTime(times) {
    const extras = this.state?.extras ?? {};
    return times && this.others.includes("timestamp") ? { ...extras, timestamp: String(times.at(-1)) } : extras;
  }

  #takeExtra(name, text) {
    try {
      const rank = this.#rank(name);
      if (rank === 1) {
        this.state.extras[name] = text.trim();
        this.#ask();
        return;
      }
      const { rows } = readCsv(text);
      this.state.extras[name] = rank <= 2 ? rows.map((row) => row[0]) : rows;
      this.#ask();
    } catch (error) {
      this.tell(error);
    }
  }

  #begin(history, times, extras) {
    this.state = this.asked.forecast = { history, times, extras, original: history.map((row) => [...row]) };
    this.step = null;
    this.changed = false;
    this.#show();
  }

  #show() {
    const { history, times, extras } = this.state;
    this.times = new Times(times, history.length, this.model.card.frequency);
    fill(this.columnList, this.#columnNames().map((name) => h("option", { value: name })));
    this.columnPicker.value = this.#columnNames()[this.column];
    this.stepField.max = history.length;
    for (const name of this.others) {
      const rows = extras[name];
      if (typeof rows === "string") document.getElementById(`input-${name}`).value = rows;
      if (Array.isArray(rows)) document.getElementById(`input-${name}`).value = writeCsv(rows.map((row) => [].concat(row))).trim();
    }
    this.#ask();
  }

  #chooseColumn() {
    const found = this.#columnNames().indexOf(this.columnPicker.value);
    if (found < 0) {
      this.tell(new Error(`There is no column “${short(this.columnPicker.value)}”.`));
      return;
    }
    this.tell(null);
    this.column = found;
    this.#draw();
  }

  #ask(pressed) {
    const { history, extras } = this.state;
    const inputs = { history: [history.map((row) => row.map((value) => value ?? NaN))] };
    for (const name of this.others) if (extras[name] !== undefined) inputs[name] = [Array.isArray(extras[name]) ? extras[name].map((row) => (Array.isArray(row) ? row.map((value) => value ?? NaN) : row)) : extras[name]];
    this.asked.request = { signature: "serving_default", inputs };
    // What is saved belongs to the table shown, not to the one before it.
    this.saveButton.disabled = true;
    const request = this.asked.request;
    this.#draw();
    this.answers.run(async () => {
      const began = performance.now();
      try {
        const outputs = await predict(this.target, "serving_default", inputs);
        this.answer = { forecast: outputs.forecast?.[0] ?? null, quantiles: outputs.quantiles?.[0] ?? null };
        if (!this.changed) this.state.before = this.answer.forecast;
        this.saveButton.disabled = !this.answer.forecast || request !== this.asked.request;
        if (pressed) performance.measure("change to forecast", { start: pressed, end: performance.now() });
        this.status.textContent = `Forecast in ${(performance.now() - began).toFixed(1)} ms, over the network and back.`;
        this.tell(null);
        this.#draw();
      } catch (error) {
        this.answer = null;
        this.status.textContent = "";
        this.#draw();
        this.tell(error);
      }
    });
  }

  #targetIndex() {
    const targets = (this.model.card.forecast_columns ?? this.names).map?.(String) ?? [];
    const count = this.answer?.forecast?.[0]?.length ?? 0;
    const name = this.#columnNames()[this.column];
    const k = targets.length === count ? targets.indexOf(name) : this.column;
    return k >= 0 && k < count ? k : -1;
  }

  #draw() {
    if (!this.state) return;
    const { history } = this.state;
    const past = history.map((row) => row[this.column]);
    const k = this.answer ? this.#targetIndex() : -1;
    const horizon = k < 0 ? 0 : this.answer.forecast.length;
    const x = Array.from({ length: past.length + horizon }, (_, i) => i);
    const ahead = (of) => [...Array(past.length).fill(null), ...of];
    const series = [{ label: "history", values: [...past, ...Array(horizon).fill(null)], colour: "ink", width: 1.5, points: past.length < 80 }];
    if (horizon) {
      const levels = this.#levels();
      const of = (q) => ahead(this.answer.quantiles.map((row) => row[k][q]));
      const last = past.at(-1);
      for (let q = 0; q < Math.floor(levels.length / 2); q++) {
        const high = levels.length - 1 - q;
        const name = `${Math.round(100 * (levels[high] - levels[q]))} % interval`;
        series.push({ label: name, values: of(high), colour: "c1", width: 0, band: `${name}, lower`, fill: 0.13 + 0.1 * q });
        series.push({ label: `${name}, lower`, values: of(q), colour: "c1", width: 0, quiet: true, group: name });
      }
      const before = this.state.before;
      if (this.changed && before) series.push({ label: "forecast before the change", values: ahead(before.map((row) => row[k])), colour: "c8", width: 1.25, dash: [5, 4] });
      const line = ahead(this.answer.forecast.map((row) => row[k]));
      if (last !== null && past.length) line[past.length - 1] = last;
      series.push({ label: "forecast", values: line, colour: "c1", width: 2.25 });
    }
    this.chart.update(x, series);
    this.#fields();
  }

  #levels() {
    const count = this.answer.quantiles?.[0]?.[0]?.length ?? 0;
    const given = this.model.card.levels ?? this.model.card.quantile_levels;
    return Array.isArray(given) && given.length === count ? given : Array.from({ length: count }, (_, q) => (q + 1) / (count + 1));
  }

  #select(i, fromField = false) {
    if (!this.state) return;
    const last = this.state.history.length - 1;
    this.step = Math.min(last, Math.max(0, Number.isFinite(i) ? i : 0));
    if (fromField) this.chart.select(this.step);
    this.#fields();
  }

  #fields() {
    if (this.step === null) this.step = this.state.history.length - 1;
    this.stepField.value = this.step + 1;
    const value = this.state.history[this.step]?.[this.column];
    if (document.activeElement !== this.valueField) this.valueField.value = value ?? "";
    this.where.textContent = [this.state.times ? this.times.label(this.step) : "", value === null ? "a gap" : ""].filter(Boolean).join(", ");
    this.undoButton.disabled = !this.changed;
  }

  #setValue(value, pressed = performance.now()) {
    if (!this.state || (value !== null && !Number.isFinite(value))) return;
    this.changed = true;
    this.state.history[this.step][this.column] = value;
    this.#ask(pressed);
  }

  #undo() {
    this.changed = false;
    this.state.history = this.state.original.map((row) => [...row]);
    this.#ask();
  }

  /** Points of the history can be drawn up and down; a click into a gap fills it. */
  #drag() {
    let held = null;
    const plot = this.chart.plot;
    const place = (event) => {
      const { u } = this.chart;
      const box = u.over.getBoundingClientRect();
      const left = event.clientX - box.left;
      const top = event.clientY - box.top;
      return { u, top, i: u.posToIdx(left), inside: left >= 0 && top >= 0 && left <= box.width && top <= box.height };
    };
    plot.addEventListener("pointerdown", (event) => {
      if (!this.state || !this.chart.u || event.button !== 0) return;
      const { u, top, i, inside } = place(event);
      if (!inside || i >= this.state.history.length) return;
      const value = this.state.history[i][this.column];
      if (value !== null && Math.abs(u.valToPos(value, "y") - top) > NEAR) return;
      event.stopPropagation();
      event.preventDefault();
      plot.setPointerCapture(event.pointerId);
      plot.classList.add("dragging");
      this.frozen = [u.scales.y.min, u.scales.y.max];
      held = i;
      this.step = i;
      if (value === null) this.#setValue(rounded(u.posToVal(top, "y"), this.frozen));
    }, true);
    plot.addEventListener("pointermove", (event) => {
      if (held === null) return;
      const { u, top } = place(event);
      this.step = held;
      this.#setValue(rounded(u.posToVal(top, "y"), this.frozen), event.timeStamp);
    });
    const drop = () => {
      if (held === null) return;
      held = null;
      this.frozen = null;
      plot.classList.remove("dragging");
      this.#draw();
    };
    plot.addEventListener("pointerup", drop);
    plot.addEventListener("pointercancel", drop);
    plot.addEventListener("mousedown", (event) => held !== null && event.stopPropagation(), true);
  }

  #download() {
    if (!this.answer?.forecast) return;
    const { history } = this.state;
    const levels = this.#levels();
    const count = this.answer.forecast[0].length;
    const names = this.model.card.forecast_columns?.length === count ? this.model.card.forecast_columns : count === this.width ? this.#columnNames() : Array.from({ length: count }, (_, i) => `column ${i + 1}`);
    const head = ["time", ...names.flatMap((name) => [name, ...levels.map((level) => `${name} ${level}`)])];
    const rows = this.answer.forecast.map((row, t) => [this.times.label(history.length + t), ...row.flatMap((value, k) => [value, ...(this.answer.quantiles?.[t]?.[k] ?? [])])]);
    const link = h("a", { href: URL.createObjectURL(new Blob([writeCsv([head, ...rows])], { type: "text/csv" })), download: "forecast.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}

const padded = (low, high) => {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
};

/** To a hundredth of a per cent of what is seen. */
const rounded = (value, [low, high]) => {
  const unit = 10 ** Math.floor(Math.log10((high - low) / 2000 || 1));
  return Number((Math.round(value / unit) * unit).toPrecision(12));
};

function levelsText(card) {
  const levels = card.levels ?? card.quantile_levels;
  return Array.isArray(levels) ? `quantiles ${levels.map((level) => number(level, 3)).join(", ")}` : "";
}
