/** Rates and latencies of a model, from two readings of the metrics. */

const LINE = /^([a-zA-Z_:][\w:]*)\{(.*)\} (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of Prometheus' text form that are wanted: name, labels, value. */
export function readMetrics(text, wanted) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (!match || !wanted.test(match[1])) continue;
    const labels = {};
    for (const [, name, value] of match[2].matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    found.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return found;
}

const WANTED = /^gru_serve:request_(count|latency_bucket)$/;

/** Counts of one model: all requests, failures, and the latency histogram (upper bound in µs). */
export function readModel(text, model) {
  const reading = { all: 0, failed: 0, buckets: new Map() };
  for (const { name, labels, value } of readMetrics(text, WANTED)) {
    if (labels.model_name !== model) continue;
    if (name.endsWith("count")) {
      reading.all += value;
      if (labels.status !== "OK") reading.failed += value;
    } else {
      const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
      reading.buckets.set(bound, (reading.buckets.get(bound) ?? 0) + value);
    }
  }
  return reading;
}

/** The quantile of what came between two readings, in milliseconds; null where nothing came. */
export function quantile(before, after, share) {
  const bounds = [...after.buckets.keys()].sort((a, b) => a - b);
  const counts = bounds.map((bound) => after.buckets.get(bound) - (before?.buckets.get(bound) ?? 0));
  const total = counts.at(-1) ?? 0;
  if (!total) return null;
  const i = counts.findIndex((count) => count >= share * total);
  const low = i ? bounds[i - 1] : 0;
  const below = i ? counts[i - 1] : 0;
  if (bounds[i] === Infinity) return low / 1000;
  return (low + ((share * total - below) / (counts[i] - below || 1)) * (bounds[i] - low)) / 1000;
}
