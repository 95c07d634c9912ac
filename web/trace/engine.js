/** Forward, loss, backward and update of a small GRU, number by number; equations of DERIVATION.md. */

export const GATES = ["z", "r", "g"];

const sigmoid = (a) => (a >= 0 ? 1 / (1 + Math.exp(-a)) : Math.exp(a) / (1 + Math.exp(a)));
const softplus = (a) => Math.max(a, 0) + Math.log1p(Math.exp(-Math.abs(a)));
const FUNCTIONS = { sigmoid, tanh: Math.tanh, relu: (a) => Math.max(a, 0), linear: (a) => a };
// Each slope from the value of its function.
const SLOPES = { sigmoid: (v) => v * (1 - v), tanh: (v) => 1 - v * v, relu: (v) => (v > 0 ? 1 : 0), linear: () => 1 };

const add = (...vectors) => vectors[0].map((_, i) => vectors.reduce((sum, vector) => sum + vector[i], 0));
const times = (a, b) => a.map((value, i) => value * b[i]);
const scaled = (a, factor) => a.map((value) => value * factor);
const product = (row, matrix) => matrix[0].map((_, j) => row.reduce((sum, value, i) => sum + value * matrix[i][j], 0));
const back = (row, matrix) => matrix.map((weights) => weights.reduce((sum, value, j) => sum + value * row[j], 0));
const outer = (a, b) => a.map((x) => b.map((y) => x * y));

/** Every number of a network, under the names of `python -m keras_gru trace --json`. */
export function trace(network) {
  const steps = [];
  let h = network.initial_state;
  network.inputs.forEach((x, t) => {
    const step = forward(network, x, h, network.targets[t] ?? null);
    steps.push(step);
    h = step.h_new;
  });
  const totals = {};
  if (network.targets.length) {
    const losses = steps.filter((step) => "loss" in step).map((step) => step.loss);
    totals.loss_sum = losses.reduce((a, b) => a + b, 0);
    totals.loss_mean = totals.loss_sum / losses.length;
    totals.loss = network.reduction === "mean" ? totals.loss_mean : totals.loss_sum;
    const scale = network.reduction === "mean" ? 1 / losses.length : 1;
    let future = network.initial_state.map(() => 0);
    for (const step of [...steps].reverse()) future = backward(network, step, future, scale);
    accumulate(network, steps, totals);
  }
  return { steps, totals };
}

function forward(network, x, h, target) {
  const { kernel: W, recurrent_kernel: U, bias: b, recurrent_bias: c } = network;
  const gate = FUNCTIONS[network.recurrent_activation];
  const s = { x, h };
  for (const k of ["z", "r"]) {
    s[`xW_${k}`] = product(x, W[k]);
    s[`hU_${k}`] = product(h, U[k]);
    s[`a_${k}`] = add(s[`xW_${k}`], b[k], s[`hU_${k}`], c[k]); // (1), (2)
    s[k] = s[`a_${k}`].map(gate);
  }
  s.xW_g = product(x, W.g);
  if (network.reset_after) { // (3a)
    s.q = add(product(h, U.g), c.g);
    s.rq = times(s.r, s.q);
    s.a_g = add(s.xW_g, b.g, s.rq);
  } else { // (3b)
    s.rh = times(s.r, h);
    s.rhU_g = product(s.rh, U.g);
    s.a_g = add(s.xW_g, b.g, s.rhU_g);
  }
  s.g = s.a_g.map(FUNCTIONS[network.activation]);
  const keeps = network.update_gate === "keep";
  const one = s.z.map((z) => 1 - z);
  s.keep = keeps ? s.z : one;
  s.add = keeps ? one : s.z;
  s.kept = times(s.keep, h);
  s.added = times(s.add, s.g);
  s.h_new = add(s.kept, s.added); // (4a), (4b)
  if (network.output_kernel) { // (16)
    s.hV = product(s.h_new, network.output_kernel);
    s.logits = add(s.hV, network.output_bias);
    s.y = predict(network.loss, s.logits);
    if (target) {
      s.target = target;
      s.loss = loss(network.loss, s.logits, target); // (17)
    }
  }
  return s;
}

function predict(kind, logits) {
  if (kind === "cross_entropy") {
    const most = Math.max(...logits);
    const powers = logits.map((o) => Math.exp(o - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  }
  return kind === "binary_cross_entropy" ? logits.map(sigmoid) : [...logits];
}

function loss(kind, logits, target) {
  if (kind === "cross_entropy") {
    const most = Math.max(...logits);
    const log = Math.log(logits.reduce((sum, o) => sum + Math.exp(o - most), 0));
    return logits.reduce((sum, o, k) => sum + target[k] * (log - (o - most)), 0);
  }
  if (kind === "binary_cross_entropy") return logits.reduce((sum, o, k) => sum + softplus(o) - target[k] * o, 0);
  return 0.5 * logits.reduce((sum, o, k) => sum + (o - target[k]) ** 2, 0);
}

function backward(network, s, future, scale) {
  const { kernel: W, recurrent_kernel: U } = network;
  const zeros = s.h.map(() => 0);
  s.dh_output = zeros;
  if (network.output_kernel && s.target) {
    s.d_logits = s.y.map((y, k) => scale * (y - s.target[k])); // (18)
    s.dW_out = outer(s.h_new, s.d_logits); // (19)
    s.db_out = s.d_logits;
    s.dh_output = back(s.d_logits, network.output_kernel); // (20)
  }
  s.dh_future = future;
  s.dh_new = add(s.dh_output, future); // (6)
  s.dz_factor = network.update_gate === "keep" ? add(s.h, scaled(s.g, -1)) : add(s.g, scaled(s.h, -1));
  s.d_z = times(s.dh_new, s.dz_factor); // (7)
  s.d_g = times(s.dh_new, s.add); // (8)
  s.slope_z = s.z.map(SLOPES[network.recurrent_activation]);
  s.d_a_z = times(s.d_z, s.slope_z); // (9)
  s.slope_g = s.g.map(SLOPES[network.activation]);
  s.d_a_g = times(s.d_g, s.slope_g); // (10)
  if (network.reset_after) { // (11a)
    s.d_q = times(s.d_a_g, s.r);
    s.d_r = times(s.d_a_g, s.q);
    s.dh_candidate = back(s.d_q, U.g);
  } else { // (11b)
    s.d_rh = back(s.d_a_g, U.g);
    s.d_r = times(s.d_rh, s.h);
    s.dh_candidate = times(s.d_rh, s.r);
  }
  s.slope_r = s.r.map(SLOPES[network.recurrent_activation]);
  s.d_a_r = times(s.d_r, s.slope_r); // (12)
  s.dh_direct = times(s.dh_new, s.keep); // (13)
  s.dh_update_gate = back(s.d_a_z, U.z);
  s.dh_reset_gate = back(s.d_a_r, U.r);
  s.dh_gates = add(s.dh_update_gate, s.dh_reset_gate);
  s.dh = add(s.dh_direct, s.dh_candidate, s.dh_gates);
  s.dx = add(back(s.d_a_z, W.z), back(s.d_a_r, W.r), back(s.d_a_g, W.g)); // (14)
  for (const k of GATES) { // (15), this step's share
    s[`dW_${k}`] = outer(s.x, s[`d_a_${k}`]);
    s[`db_${k}`] = s[`d_a_${k}`];
  }
  s.dU_z = outer(s.h, s.d_a_z);
  s.dU_r = outer(s.h, s.d_a_r);
  s.dU_g = network.reset_after ? outer(s.h, s.d_q) : outer(s.rh, s.d_a_g);
  if (network.reset_after) Object.assign(s, { dc_z: s.d_a_z, dc_r: s.d_a_r, dc_g: s.d_q });
  return s.dh;
}

/** Every trained array under the name its gradient carries behind the d. */
export function weights(network) {
  const found = {};
  for (const k of GATES) {
    found[`W_${k}`] = network.kernel[k];
    found[`U_${k}`] = network.recurrent_kernel[k];
    found[`b_${k}`] = network.bias[k];
    if (network.reset_after) found[`c_${k}`] = network.recurrent_bias[k];
  }
  if (network.output_kernel) Object.assign(found, { W_out: network.output_kernel, b_out: network.output_bias });
  return found;
}

const each = (a, b, f) => (Array.isArray(a) ? a.map((value, i) => each(value, b[i], f)) : f(a, b));

function accumulate(network, steps, totals) {
  for (const [name, weight] of Object.entries(weights(network))) {
    const shares = steps.map((step) => step[`d${name}`]).filter(Boolean);
    totals[`d${name}`] = shares.slice(1).reduce((sum, share) => each(sum, share, (a, b) => a + b), shares[0]); // (15)
    if (network.learning_rate !== null) {
      totals[`new_${name}`] = each(weight, totals[`d${name}`], (w, d) => w - network.learning_rate * d); // (21)
    }
  }
}
