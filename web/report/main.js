/** A report: what stands in the page already, with curves and tables that answer the reader. */
import { Chart } from "../shared/charts.js";
import { fill, h, number, percent } from "../shared/dom.js";
import { themeButton } from "../shared/theme.js";
import { comparison } from "./comparison.js";
import { confusion } from "./confusion.js";
import { forecasts } from "./forecasts.js";
import { marked } from "./marked.js";

const data = JSON.parse(document.getElementById("data").textContent);

const DRAWN = {
  "curves.png": ({ epochs, best, curves }) => h("div", { class: "columns" }, Object.entries(curves).map(([name, of]) => {
    const chart = new Chart({ title: name, height: 230, xLabel: (i) => `epoch ${epochs[i]}` });
    chart.update(epochs.map((_, i) => i), [
      { label: "training (with dropout)", values: of.train, colour: "c8", dash: [5, 4], points: true },
      { label: "validation", values: of.validation, colour: "c1", width: 2, points: true },
      { label: `best epoch, ${best}`, values: epochs.map((epoch, i) => (epoch === best ? of.validation[i] : null)), colour: "c2", width: 3, points: true }]);
    return chart.element;
  })),
  "confusion_matrix.png": confusion,
  "errors_by_horizon.png": (kinds) => h("div", { class: "columns" }, Object.entries(kinds).map(([kind, rows]) => {
    const chart = new Chart({ title: `${kind === "mse" ? "Mean squared error" : "Mean absolute error"} by horizon`, height: 260, xLabel: (i) => `${i + 1}`, y: (low, high) => [0, (high || 1) * 1.05] });
    const values = Object.values(rows);
    chart.update(values[0].map((_, i) => i), Object.entries(rows).map(([label, of], i) => ({ label, values: of, colour: i, width: i ? 1.5 : 2.75 })));
    return chart.element;
  })),
  "coverage.png": (intervals) => {
    const chart = new Chart({ title: "Share of test values inside the intervals, by horizon", height: 220, xLabel: (i) => `${i + 1}`, format: (value, digits) => (digits ? percent(value, 0) : percent(value)), y: (low) => [Math.max(0, low - 0.05), 1] });
    chart.update(intervals[0].by_horizon.map((_, i) => i), intervals.flatMap(({ nominal, by_horizon: of }, i) => [
      { label: `${percent(nominal, 0)} interval`, values: of, colour: i, width: 2 }, { label: `promised ${percent(nominal, 0)}`, values: of.map(() => nominal), colour: i, dash: [4, 4], width: 1, quiet: true, group: `${percent(nominal, 0)} interval` }]));
    return chart.element;
  },
  "forecasts.png": forecasts,
  "comparison.png": comparison,
  "report.html": marked,
};

function start() {
  const page = document.getElementById("page");
  page.classList.add("drawn");
  const headings = [...page.querySelectorAll("h2")];
  headings.forEach((heading, i) => (heading.id = `part-${i + 1}`));
  document.body.prepend(h("header", { class: "top noprint" }, h("nav", { "aria-label": "Contents" }, headings.map((heading) => h("a", { href: `#${heading.id}` }, heading.textContent))), themeButton()));
  for (const place of page.querySelectorAll("[data-picture]")) {
    const name = place.dataset.picture;
    const made = DRAWN[name]?.(data[name]);
    if (made) place.closest("p").replaceWith(made);
  }
  page.querySelectorAll("table").forEach(sortable);
}

/** Sort the rows of a table by the column whose heading is chosen. */
function sortable(table) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 3 || table.closest(".fixed")) return;
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = h("button", { type: "button", class: "sort", onclick: () => sort() }, ...cell.childNodes);
    if (!cell.textContent.trim() && !button.textContent.trim()) button.append(h("span", { class: "visually-hidden" }, "name"));
    fill(cell, button);
    function sort() {
      const down = cell.getAttribute("aria-sort") !== "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const text = row.cells[column].textContent.trim();
        const found = Number.parseFloat(text.replace(/[,+]/g, "").replace("−", "-"));
        return Number.isNaN(found) ? text : found;
      };
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      fill(body, rows);
    }
  });
}

start();
