/** Rows of numbers over steps as strips of colour. */
import { colour, onTheme } from "./theme.js";

const VIRIDIS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const maps = new Set();
onTheme(() => maps.forEach((map) => map.draw()));

/** The colour of a value in [0, 1], as red, green and blue. */
export function viridis(value) {
  const place = Math.min(0.99999, Math.max(0, value)) * (VIRIDIS.length - 1);
  const i = Math.floor(place);
  return VIRIDIS[i].map((from, k) => Math.round(from + (place - i) * (VIRIDIS[i + 1][k] - from)));
}

/** A canvas with a row for each of several lists of numbers, low to high as `range` says. */
export class Heatmap {
  constructor({ rowHeight = 20, gap = 0, onHover }) {
    Object.assign(this, { rowHeight, gap, rows: [], range: [0, 1], selected: null });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.style.width = "100%";
    const hover = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const steps = this.rows[0]?.length ?? 0;
      const step = Math.floor(((event.clientX - box.left) / box.width) * steps);
      const row = Math.floor(((event.clientY - box.top) / box.height) * this.rows.length);
      if (step >= 0 && step < steps) onHover(step, Math.min(this.rows.length - 1, Math.max(0, row)));
    };
    this.canvas.addEventListener("pointermove", hover);
    this.canvas.addEventListener("pointerdown", hover);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    maps.add(this);
  }

  update(rows, range = [0, 1]) {
    Object.assign(this, { rows, range });
    this.canvas.style.height = `${rows.length * (this.rowHeight + this.gap)}px`;
    this.draw();
  }

  select(step) {
    this.selected = step;
    this.draw();
  }

  draw() {
    const scale = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * scale));
    const each = Math.round((this.rowHeight + this.gap) * scale);
    const height = Math.max(1, this.rows.length * each);
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    const steps = this.rows[0]?.length ?? 0;
    if (!steps) return;
    const columns = Math.min(steps, width);
    const [low, high] = this.range;
    this.rows.forEach((row, k) => {
      for (let c = 0; c < columns; c++) {
        const from = Math.floor((c * steps) / columns);
        const to = Math.max(from + 1, Math.floor(((c + 1) * steps) / columns));
        let sum = 0;
        for (let i = from; i < to; i++) sum += row[i];
        const [r, g, b] = viridis((sum / (to - from) - low) / (high - low || 1));
        context.fillStyle = `rgb(${r},${g},${b})`;
        const left = Math.round((c * width) / columns);
        context.fillRect(left, k * each, Math.round(((c + 1) * width) / columns) - left, Math.round(this.rowHeight * scale));
      }
    });
    if (this.selected !== null && this.selected < steps) {
      context.strokeStyle = colour("ink");
      context.lineWidth = 2 * scale;
      const left = (this.selected * width) / steps;
      context.strokeRect(left, scale, Math.max(2 * scale, width / steps), height - 2 * scale);
    }
  }
}
