/** What the signature `gates` says of one text. */

const QUANTITIES = [["update_gate", "update gate", [0, 1]], ["reset_gate", "reset gate", [0, 1]], ["state", "state", [-1, 1]]];

/**
 * Words with their scores, and summaries of the gates; padding is left out.
 * @returns {{tokens, scores, summary, quantities, places}}
 */
export function readWords(outputs) {
  const tokens = (outputs.tokens?.[0] ?? []).map(String);
  while (tokens.length && tokens.at(-1) === "") tokens.pop();
  const count = tokens.length;
  const scores = (outputs.scores?.[0] ?? []).slice(0, count);
  const quantities = QUANTITIES.filter(([key]) => Array.isArray(outputs[key]?.[0]?.[0])).map(([key, name, range]) => {
    const steps = outputs[key][0].slice(0, count);
    return { key, name, range, steps, units: (place) => transpose(steps.map((step) => groups(step)[place] ?? [])) };
  });
  const first = quantities[0]?.steps[0] ?? [];
  const directions = first[0]?.length ?? 1;
  const places = groups(first).map((_, k) => {
    const layer = first.length > 1 ? `layer ${Math.floor(k / directions) + 1}` : "the layer";
    return directions > 1 ? `${layer}, ${k % directions ? "backward" : "forward"}` : layer;
  });
  const summary = [];
  for (const { key, name, steps } of quantities) {
    if (key !== "state") summary.push({ name, values: steps.map((step) => mean(step.flat(Infinity))) });
    else summary.push({ name: "change of the state", values: changes(steps) });
  }
  return { tokens, scores, summary, quantities, places };
}

/** The units of each layer and direction. */
const groups = (step) => step.flatMap((layer) => layer);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
const transpose = (rows) => (rows[0] ?? []).map((_, k) => rows.map((row) => row[k]));

/** How far the state moved at each word: the mean over all units of the absolute difference. */
function changes(steps) {
  return steps.map((step, i) => {
    const now = step.flatMap((layer) => layer);
    return mean(now.flatMap((units, k) => {
      const backward = k % step[0].length === 1;
      const before = steps[backward ? i + 1 : i - 1]?.flatMap((layer) => layer)[k];
      return units.map((value, u) => Math.abs(value - (before?.[u] ?? 0)));
    }));
  });
}
