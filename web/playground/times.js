/** Times of a series: given, or counted from the steps. */

const UNITS = { s: 1, sec: 1, min: 60, t: 60, h: 3600, d: 86400, w: 604800 };

/** Labels of steps, past and to come; `count` of them are known or counted back. */
export class Times {
  constructor(given, count, frequency) {
    this.given = given;
    this.count = count;
    const last = given ? Date.parse(iso(given.at(-1))) : NaN;
    const before = given && given.length > 1 ? Date.parse(iso(given.at(-2))) : NaN;
    this.last = last;
    this.step = Number.isFinite(last - before) && last > before ? last - before : seconds(frequency) * 1000;
    this.dates = given ? /^\d{4}-\d\d-\d\d$/.test(given[0]) : false;
  }

  label(i) {
    if (this.given && i < this.count) return this.given[i];
    const ahead = i - this.count + 1;
    if (this.given && Number.isFinite(this.last) && this.step) {
      const text = new Date(this.last + ahead * this.step).toISOString();
      return this.dates ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
    }
    return ahead > 0 ? `+${ahead}` : `${ahead}`.replace("-", "−");
  }
}

const iso = (text) => (/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text.replace(" ", "T")}Z` : text);

/** Seconds of `h`, `15min`, `W-SAT`; 0 where it is none of a fixed length. */
function seconds(frequency) {
  const found = /^(\d*)\s*([a-z]+)/i.exec(String(frequency ?? "").split("-")[0]);
  return found ? Number(found[1] || 1) * (UNITS[found[2].toLowerCase()] ?? 0) : 0;
}
