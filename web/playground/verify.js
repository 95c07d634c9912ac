/** The golden requests, asked again: does the server answer as the model did at its export? */
import { classify, predict } from "./api.js";

const TOLERANCE = 1e-5;

/**
 * Ask each request of a version and compare, as `gru-serve verify` does.
 * @param {function} progress Called with the number of requests done.
 * @returns {{requests, rows, largest, wrong: string[]}}
 */
export async function verify(target, golden, progress) {
  const result = { requests: 0, rows: 0, largest: 0, wrong: [] };
  for (const [i, request] of golden.entries()) {
    const outputs = await ask(target, request);
    for (const [name, expected] of Object.entries(request.outputs)) {
      const where = `request ${i + 1} (${request.signature_name}), output ${name}`;
      if (outputs?.[name] === undefined) result.wrong.push(`${where}: no answer`);
      else compare(expected, outputs[name], where, result);
    }
    const first = Object.values(request.outputs)[0];
    result.rows += Array.isArray(first) ? first.length : 1;
    progress(++result.requests);
  }
  return result;
}

async function ask(target, request) {
  if (request.method === "classify") {
    const results = await classify(target, request.signature_name, request.examples);
    return { classes: results.map((row) => row.map(([label]) => label)), scores: results.map((row) => row.map(([, score]) => score)) };
  }
  if (request.method === "regress") return null;
  return predict(target, request.signature_name, request.inputs);
}

function compare(expected, got, where, result) {
  const a = [expected].flat(Infinity);
  const b = [got].flat(Infinity);
  if (a.length !== b.length) {
    result.wrong.push(`${where}: ${b.length} values, expected ${a.length}`);
    return;
  }
  let scale = 1;
  for (const value of a) if (typeof value === "number" && Math.abs(value) > scale) scale = Math.abs(value);
  let worst = 0;
  for (let i = 0; i < a.length; i++) {
    if (typeof a[i] === "number" && typeof b[i] === "number") {
      if (Number.isNaN(a[i]) && Number.isNaN(b[i])) continue;
      const difference = Math.abs(a[i] - b[i]) / scale;
      worst = Number.isNaN(difference) ? Infinity : Math.max(worst, difference);
    } else if (a[i] !== b[i]) worst = Infinity;
  }
  result.largest = Math.max(result.largest, worst);
  if (worst > TOLERANCE) result.wrong.push(`${where}: differs by ${worst === Infinity ? "another value" : worst.toExponential(2)}`);
}
