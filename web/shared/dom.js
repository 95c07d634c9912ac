/** Elements without markup in strings: what a model or a text says can never become a tag. */

/**
 * An element.
 * @param {string} tag Its name.
 * @param {object} properties Attributes; functions under `onNAME` become listeners.
 * @param {...(Node|string|number|null|undefined|Array)} children Strings become text.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Put these in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/** A table; the first of `head` names the rows where `rowHeads` is set. */
export function table(caption, head, rows, { rowHeads = true, numeric = true } = {}) {
  const cell = (value, i) =>
    i === 0 && rowHeads
      ? h("th", { scope: "row" }, value)
      : h("td", { class: numeric && i > 0 ? "number" : null }, value);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((name, i) =>
        h("th", { scope: "col", class: numeric && i > 0 ? "number" : null }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

/** A number for people: about `digits` digits, no exponent where it can be helped. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 1).replace("-", "−");
  const decimals = Math.min(8, Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1))));
  return value.toLocaleString("en-US", { minimumFractionDigits: Math.min(decimals, digits - 1), maximumFractionDigits: decimals }).replace("-", "−");
}

export function percent(value, digits = 1) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(digits)} %` : "–";
}

/** The text, cut where it is longer. */
export function short(text, most = 60) {
  const letters = [...String(text)];
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1).join("")}…`;
}
