/** Labels against answers, and the mistakes behind each cell. */
import { fill, h, percent } from "../shared/dom.js";

const AT_ONCE = 25;
const NUMBERED = 12; // More classes than this: cells hold colour alone until they are pointed at.

export function confusion({ classes, counts, mistakes, wrong }) {
  const filter = { label: null, predicted: null, text: "" };
  let shown = AT_ONCE;
  const many = classes.length > NUMBERED;
  const said = h("p", { class: "readout small", "aria-live": "polite" }, "Choose a cell for its mistakes.");
  const totals = counts.map((row) => row.reduce((a, b) => a + b, 0));
  const describe = (i, j) => `${counts[i][j].toLocaleString("en-US")} of ${totals[i].toLocaleString("en-US")} rows labelled ${classes[i]} are answered ${classes[j]} (${percent(counts[i][j] / (totals[i] || 1))})`;
  const cells = counts.map((row, i) => row.map((count, j) => {
    const share = count / (totals[i] || 1);
    const button = h("button", { type: "button", class: i === j ? "cell right" : "cell", tabindex: many && i !== j && !count ? -1 : 0,
      onpointerenter: () => (said.textContent = describe(i, j)), onfocus: () => (said.textContent = describe(i, j)), onclick: () => choose(i, j) },
    many ? null : [h("span", {}, count.toLocaleString("en-US")), " ", h("small", {}, percent(share, 0))], h("span", { class: "visually-hidden" }, many ? describe(i, j) : ` labelled ${classes[i]}, answered ${classes[j]}`));
    button.style.setProperty("--share", `${Math.round(75 * share ** 0.6)}%`);
    return button;
  }));
  const matrix = h("div", { class: "scroll fixed", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, h("table", { class: many ? "matrix many" : "matrix" },
    h("caption", {}, "Test rows by label (lines) and answer (columns)"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "label")), classes.map((name) => h("th", { scope: "col", title: name }, h("span", {}, name))))),
    h("tbody", {}, cells.map((row, i) => h("tr", {}, h("th", { scope: "row", title: classes[i] }, classes[i]), row.map((cell) => h("td", {}, cell)))))));
  const picker = (id, name) => {
    const select = h("select", { id, onchange: () => { filter[name] = select.value === "" ? null : Number(select.value); show(); } }, h("option", { value: "" }, "any"), classes.map((one, i) => h("option", { value: i }, one)));
    return select;
  };
  const [label, predicted] = [picker("mistake-label", "label"), picker("mistake-predicted", "predicted")];
  const text = h("input", { type: "search", id: "mistake-text", oninput: () => { filter.text = text.value.toLowerCase(); show(); } });
  const list = h("ol", { class: "mistakes" });
  const count = h("p", { class: "soft small", "aria-live": "polite" });
  const more = h("button", { type: "button", onclick: () => { shown += 4 * AT_ONCE; show(false); } }, "Show more");

  function choose(i, j) {
    filter.label = i;
    filter.predicted = j === i ? null : j;
    label.value = i;
    predicted.value = filter.predicted ?? "";
    show();
  }

  function show(anew = true) {
    if (anew) shown = AT_ONCE;
    const found = mistakes.filter(([, i, j, , words]) => (filter.label === null || filter.label === i) && (filter.predicted === null || filter.predicted === j) && words.toLowerCase().includes(filter.text));
    count.textContent = `${found.length.toLocaleString("en-US")} of ${wrong.toLocaleString("en-US")} mistakes, the most confident first${mistakes.length < wrong ? `; the page holds the first ${mistakes.length.toLocaleString("en-US")}` : ""}.`;
    fill(list, found.slice(0, shown).map(([row, i, j, probability, words]) => h("li", {},
      h("span", {}, h("b", { class: "good" }, classes[i]), " taken for ", h("b", { class: "bad" }, classes[j]), ` ${percent(probability)}`, h("span", { class: "soft" }, `, row ${row + 1}`)), h("p", {}, words || "(an empty text)"))));
    more.hidden = found.length <= shown;
  }
  show();
  return h("div", {}, matrix, said, h("section", { class: "explorer", "aria-label": "Mistakes" }, h("p", {}, h("b", {}, "All mistakes")),
    h("div", { class: "fields" }, h("label", { for: "mistake-label" }, "Label", label), h("label", { for: "mistake-predicted" }, "Answer", predicted), h("label", { for: "mistake-text" }, "Text contains", text)), count, list, more));
}
