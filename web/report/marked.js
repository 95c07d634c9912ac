/** Texts whose words are marked by what they have to do with an answer. */
import { h } from "../shared/dom.js";

export const marked = (rows) => h("ol", { class: "marked" }, rows.map(({ answer, verdict, words }) => {
  const most = Math.max(1e-9, ...words.map(([, score]) => Math.abs(score)));
  return h("li", {}, h("b", {}, answer), h("span", { class: "soft" }, `, ${verdict}`), h("p", { class: "words" }, words.flatMap(([word, score]) => {
    const sign = score < 0 ? "−" : "+";
    const span = h("span", { class: score < 0 ? "away" : "towards", title: `${sign}${Math.abs(score).toFixed(3)}` }, word);
    span.style.setProperty("--share", `${Math.round((45 * Math.abs(score)) / most)}%`);
    return [span, " "];
  })));
}));
