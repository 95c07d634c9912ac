/** Test windows: history, forecast with its intervals, and what came. */
import { Chart } from "../shared/charts.js";
import { fill, h, percent } from "../shared/dom.js";

export function forecasts({ columns, more, levels, windows }) {
  let column = 0;
  const whole = (of) => of.came[0].every((value) => value !== null);
  let at = Math.max(0, windows.findLastIndex(whole));
  if (!whole(windows[at])) at = windows.length - 1;
  const chart = new Chart({ title: "Test windows", height: 320, xLabel: (i) => { const ahead = i - (windows[at].history[0].length - 1); return ahead > 0 ? `+${ahead}` : `${ahead}`.replace("-", "−"); } });
  const list = h("datalist", { id: "forecast-columns" }, columns.map((name) => h("option", { value: name })));
  const picker = h("input", { id: "forecast-column", list: "forecast-columns", autocomplete: "off", value: columns[0], onchange: () => {
    const found = columns.indexOf(picker.value);
    if (found >= 0) { column = found; show(); } else picker.value = columns[column];
  } });
  const slider = h("input", { id: "forecast-window", type: "range", min: 0, max: windows.length - 1, value: at, oninput: () => { at = Number(slider.value); show(); } });
  const said = h("span", { class: "soft small" });

  function show() {
    const of = windows[at];
    const past = of.history[column];
    const ahead = (values) => [...Array(past.length).fill(null), ...values];
    const x = Array.from({ length: past.length + of.forecast[column].length }, (_, i) => i);
    const series = [{ label: "history", values: [...past, ...of.forecast[column].map(() => null)], colour: "ink", width: 1.5 }];
    for (let q = 0; q < Math.floor(levels.length / 2); q++) {
      const high = levels.length - 1 - q;
      const name = `${percent(levels[high] - levels[q], 0)} interval`;
      series.push({ label: name, values: ahead(of.quantiles[column][high]), colour: "c1", width: 0, band: `${name}, lower`, fill: 0.16 }, { label: `${name}, lower`, values: ahead(of.quantiles[column][q]), colour: "c1", width: 0, quiet: true, group: name });
    }
    series.push({ label: "forecast", values: ahead(of.forecast[column]), colour: "c1", width: 2.25 }, { label: "what came", values: ahead(of.came[column]), colour: "c2", width: 1.5, points: true });
    chart.update(x, series);
    said.textContent = `${at + 1} of ${windows.length}, from row ${of.origin.toLocaleString("en-US")}`;
  }
  fill(list, ...list.childNodes);
  show();
  return h("div", {}, h("div", { class: "fields" }, columns.length > 1 ? h("label", { for: "forecast-column" }, `Column${more ? ` (${more.toLocaleString("en-US")} more are not in the page)` : ""}`, picker) : null, list,
    h("label", { for: "forecast-window" }, "Window", slider), said), chart.element);
}
