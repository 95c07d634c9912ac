/** Curves with bands over numbered steps: uPlot with a legend, keys and a table of its numbers. */
import uPlot from "uplot";
import { fill, h, number, table } from "./dom.js";
import { colour, onTheme, seriesColour } from "./theme.js";

const MOST_ROWS = 400;
const charts = new Set();
onTheme(() => charts.forEach((chart) => chart.repaint()));

/**
 * A chart in a figure. Series: `label`, `values` (null where there is none), and perhaps `colour`
 * (index or name), `dash`, `width`, `points`, `hidden`, `band` (label of the series up to which to
 * fill), `fill` (opacity), `quiet` (not in the legend).
 */
export class Chart {
  constructor({ title, height = 240, xLabel = (x) => String(x), format = number, y, onSelect, note = "" }) {
    Object.assign(this, { height, xLabel, format, range: y, onSelect, series: [], x: [], selected: null });
    this.legend = h("ul", { class: "legend" });
    this.plot = h("div", { class: "chart", tabindex: "0", role: "slider", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0, onkeydown: (event) => this.#key(event) });
    this.plot.style.height = `${height}px`;
    this.numbers = h("details", { ontoggle: () => this.#table() }, h("summary", {}, "Numbers as a table"), h("div"));
    this.title = title;
    this.caption = h("figcaption", {}, title);
    this.note = h("p", { class: "soft small", hidden: !note }, note);
    this.element = h("figure", {}, this.caption, this.plot, this.legend, this.note, this.numbers);
    new ResizeObserver(([entry]) => this.#resize(entry.contentRect.width)).observe(this.plot);
    charts.add(this);
  }

  /** Draw these; the plot is made anew only where series come or go. */
  update(x, series) {
    const same = this.u && series.length === this.series.length
      && series.every((one, i) => ["label", "band", "width", "colour", "points"].every((key) => one[key] === this.series[i][key]));
    const shown = new Map(this.series.map((one) => [one.label, one.shown]));
    this.x = x;
    this.series = series.map((one) => ({ ...one, shown: shown.get(one.label) ?? !one.hidden }));
    if (this.selected !== null && this.selected >= x.length) this.selected = null;
    this.plot.setAttribute("aria-valuemax", Math.max(0, x.length - 1));
    if (same) this.u.setData(this.#data());
    else this.#make();
    this.#legend();
    this.#table();
    if (this.selected !== null) this.#showCursor();
  }

  /** Move the cursor to a step without telling `onSelect`; null for none. */
  select(index) {
    if (index === this.selected) return;
    this.selected = index;
    this.#values();
    this.#showCursor();
  }

  repaint() {
    if (!this.u) return;
    this.u.redraw(true);
    this.#legend();
  }

  remove() {
    charts.delete(this);
    this.u?.destroy();
  }

  #data() {
    return [this.x, ...this.series.map((one) => one.values)];
  }

  #make() {
    this.u?.destroy();
    const paint = (one, i) => (typeof one.colour === "string" ? colour(one.colour) : seriesColour(one.colour ?? i));
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("faint"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1, size: 4 }, font: "12px system-ui, sans-serif" };
    const at = (label) => this.series.findIndex((one) => one.label === label) + 1;
    const options = {
      width: Math.max(120, this.plot.clientWidth), height: this.height, legend: { show: false },
      padding: [10, 30, 0, 0],
      scales: { x: { time: false }, y: this.range ? { range: (u, low, high) => this.range(low, high, this.x) } : {} },
      axes: [
        { ...axis, space: 70, size: 30, values: (u, ticks) => ticks.map((x) => (Number.isInteger(x) && x >= this.x[0] && x <= this.x.at(-1) ? this.xLabel(x) : "")) },
        { ...axis, size: 58, values: (u, ticks) => ticks.map((y) => this.format(y, 3)) },
      ],
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 7, fill: (u, i) => (i ? paint(this.series[i - 1], i - 1) : "transparent"), stroke: () => colour("card") } },
      series: [{}, ...this.series.map((one, i) => ({
        label: one.label, show: one.shown, width: one.width ?? 1.75, dash: one.dash, spanGaps: false,
        stroke: () => (one.width === 0 ? "transparent" : paint(one, i)),
        points: { show: one.points ?? false, size: 6, fill: () => colour("card"), stroke: () => paint(one, i) },
      }))],
      bands: this.series.flatMap((one, i) => (one.band ? [{ series: [at(one.label), at(one.band)], fill: () => translucent(paint(one, i), one.fill ?? 0.2) }] : [])),
      hooks: { setCursor: [(u) => this.#cursor(u.cursor.idx ?? null)] },
    };
    this.u = new uPlot(options, this.#data(), this.plot);
  }

  #resize(width) {
    if (width && this.u && Math.round(width) !== this.u.width) {
      this.u.setSize({ width: Math.round(width), height: this.height });
      this.#showCursor();
    }
  }

  #cursor(index) {
    if (this.placing || index === null || index === this.selected) return;
    this.selected = index;
    this.#values();
    this.onSelect?.(index);
  }

  #showCursor() {
    if (!this.u || this.selected === null) return;
    this.placing = true;
    this.u.setCursor({ left: this.u.valToPos(this.x[this.selected], "x"), top: this.height / 2 });
    this.placing = false;
  }

  #key(event) {
    const last = this.x.length - 1;
    const from = this.selected ?? 0;
    const page = Math.max(1, Math.round(last / 10));
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageDown: from - page, PageUp: from + page, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    const index = Math.min(last, Math.max(0, to));
    this.select(index);
    this.onSelect?.(index);
  }

  #values() {
    const i = this.selected;
    if (i === null) return;
    const said = this.series.filter((one) => one.shown && !one.quiet && one.values[i] !== null && one.values[i] !== undefined)
      .map((one) => `${one.label} ${this.format(one.values[i])}`);
    this.plot.setAttribute("aria-valuenow", i);
    this.plot.setAttribute("aria-valuetext", [this.xLabel(this.x[i]), ...said].join(", "));
    for (const [value, one] of this.values ?? []) value.textContent = this.format(one.values[i]);
  }

  #legend() {
    this.values = [];
    fill(this.legend, this.series.map((one, i) => {
      if (one.quiet) return null;
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      const paint = typeof one.colour === "string" ? colour(one.colour) : seriesColour(one.colour ?? i);
      swatch.style.setProperty("--swatch", one.band ? translucent(paint, one.fill ?? 0.2) : paint);
      const value = h("span", { class: "value" });
      this.values.push([value, one]);
      const toggle = () => {
        one.shown = !one.shown;
        for (let k = 0; k < this.series.length; k++) if (k === i || this.series[k].group === one.label) { this.series[k].shown = one.shown; this.u.setSeries(k + 1, { show: one.shown }); }
        button.setAttribute("aria-pressed", one.shown);
      };
      const button = h("button", { type: "button", "aria-pressed": String(one.shown), onclick: toggle }, swatch, one.label, value);
      return h("li", {}, button);
    }));
    this.#values();
  }

  #table() {
    if (!this.numbers.open) return;
    const named = this.series.filter((one) => one.values);
    const from = Math.max(0, this.x.length - MOST_ROWS);
    const rows = this.x.slice(from).map((x, i) => [this.xLabel(x), ...named.map((one) => this.format(one.values[from + i]))]);
    fill(this.numbers.lastChild, table(from ? `${this.title}, the last ${MOST_ROWS} of ${this.x.length} steps` : this.title, ["step", ...named.map((one) => one.label)], rows));
  }
}

function translucent(text, opacity) {
  const digits = text.replace("#", "");
  const [r, g, b] = [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${opacity})`;
}
