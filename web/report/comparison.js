/** Differences from the reference with their intervals, a line for each model. */
import { h, number } from "../shared/dom.js";

export function comparison({ reference, measures }) {
  return h("div", {}, Object.entries(measures).filter(([, of]) => of.rows.length).map(([name, of]) => {
    const scale = of.percent ? 100 : 1;
    const unit = of.percent ? " points" : "";
    const reach = of.rows.filter((row) => row.run).concat(of.rows.some((row) => row.run) ? [] : of.rows);
    const most = Math.max(1e-12, ...reach.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value]).map(Math.abs)) * scale * 1.15;
    const place = (value) => `${50 + (50 * Math.max(-1, Math.min(1, (value * scale) / most)))}%`;
    return h("figure", { class: "differences" }, h("figcaption", {}, `${name}: difference from ${reference}${unit ? `, in${unit}` : ""} (${of.higher ? "higher" : "lower"} is better)`),
      h("ul", {}, of.rows.map((row) => {
        const far = Math.abs(row.value * scale) > most;
        const text = `${number(row.value * scale, 3)}${unit}${row.low === null || row.low === undefined ? "" : ` (${number(row.low * scale, 3)} to ${number(row.high * scale, 3)})`}`;
        const line = h("span", { class: "interval" });
        if (row.low !== null && row.low !== undefined) { line.style.left = place(row.low); line.style.right = `calc(100% - ${place(row.high)})`; }
        else line.hidden = true;
        const dot = h("span", { class: row.run ? "dot" : "dot simple" }, far ? (row.value > 0 ? "›" : "‹") : "");
        dot.style.left = place(row.value);
        return h("li", { class: row.verdict.split(" ")[0] }, h("span", { class: "name", title: row.name }, row.name), h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "zero" }), line, dot), h("span", { class: "number" }, text, row.verdict ? h("b", {}, ` ${row.verdict}`) : null));
      })));
  }));
}
