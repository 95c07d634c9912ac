/** What each number is: its equation, and the equation with the number's own inputs put in. */

const MOST_TERMS = 12;

/** A number as it stands within a formula. */
export function put(value) {
  const text = Number(value.toPrecision(6)).toString().replace("-", "−");
  return value < 0 ? `(${text})` : text;
}

const sum = (terms) => (terms.length > MOST_TERMS ? `${terms.slice(0, MOST_TERMS).join(" + ")} + …` : terms.join(" + "));
const dot = (row, column) => sum(row.map((value, i) => `${put(value)}·${put(column[i])}`));
const column = (matrix, j) => matrix.map((row) => row[j]);
const APPLIED = { sigmoid: "σ", tanh: "tanh", relu: "max(0, ·)", linear: "" };
const SLOPE = {
  sigmoid: (v) => `${put(v)}·(1 − ${put(v)})`, tanh: (v) => `1 − ${put(v)}²`, relu: (v) => `[${put(v)} > 0]`, linear: () => "1",
};
const apply = (name, a) => (name === "relu" ? `max(0, ${put(a)})` : `${APPLIED[name]}(${put(a)})`);

/**
 * The lines of a step, forward and then backward: name, equation, what it is, formula, and
 * `inputs(s, i)`, the formula of its i-th number with the inputs put in.
 */
export function stepLines(network) {
  const { kernel: W, recurrent_kernel: U, bias: b, recurrent_bias: c } = network;
  const after = network.reset_after;
  const keeps = network.update_gate === "keep";
  const [gate, phi] = [network.recurrent_activation, network.activation];
  const lines = [];
  const line = (part, name, eq, label, formula, inputs) => lines.push({ part, name, eq, label, formula, inputs });
  const forward = (...rest) => line("forward", ...rest);
  const back = (...rest) => line("backward", ...rest);
  const gateNames = { z: "update gate", r: "reset gate" };
  const T = (matrix, i) => matrix[i]; // A row of the matrix is a column of its transpose.

  forward("x", "", "input", "x", (s, i) => put(s.x[i]));
  forward("h", "", "previous state", "h", (s, i) => put(s.h[i]));
  for (const [k, eq] of [["z", "1"], ["r", "2"]]) {
    forward(`xW_${k}`, eq, "input times weights", `xW_${k}`, (s, i) => dot(s.x, column(W[k], i)));
    forward(`hU_${k}`, eq, "state times weights", `hU_${k}`, (s, i) => dot(s.h, column(U[k], i)));
    forward(`a_${k}`, eq, `before the ${gate}`, after ? `xW_${k} + b_${k} + hU_${k} + b′_${k}` : `xW_${k} + b_${k} + hU_${k}`, (s, i) => sum([s[`xW_${k}`][i], b[k][i], s[`hU_${k}`][i], ...(after ? [c[k][i]] : [])].map(put)));
    forward(k, eq, gateNames[k], `${APPLIED[gate]}(a_${k})`, (s, i) => apply(gate, s[`a_${k}`][i]));
  }
  const eq3 = after ? "3a" : "3b";
  forward("xW_g", eq3, "input times weights", "xW_g", (s, i) => dot(s.x, column(W.g, i)));
  if (after) {
    forward("q", eq3, "state times weights", "hU_g + b′_g", (s, i) => `${dot(s.h, column(U.g, i))} + ${put(c.g[i])}`);
    forward("rq", eq3, "as far as the reset gate lets it", "r ⊙ q", (s, i) => `${put(s.r[i])}·${put(s.q[i])}`);
    forward("a_g", eq3, `before the ${phi}`, "xW_g + b_g + r⊙q", (s, i) => sum([s.xW_g[i], b.g[i], s.rq[i]].map(put)));
  } else {
    forward("rh", eq3, "state as far as the reset gate lets it", "r ⊙ h", (s, i) => `${put(s.r[i])}·${put(s.h[i])}`);
    forward("rhU_g", eq3, "the same times weights", "(r⊙h)U_g", (s, i) => dot(s.rh, column(U.g, i)));
    forward("a_g", eq3, `before the ${phi}`, "xW_g + b_g + (r⊙h)U_g", (s, i) => sum([s.xW_g[i], b.g[i], s.rhU_g[i]].map(put)));
  }
  forward("g", eq3, "candidate", `${APPLIED[phi]}(a_g)`, (s, i) => apply(phi, s.a_g[i]));
  const eq4 = keeps ? "4a" : "4b";
  forward("kept", eq4, "kept of the old state", keeps ? "z ⊙ h" : "(1 − z) ⊙ h", (s, i) => (keeps ? `${put(s.z[i])}·${put(s.h[i])}` : `(1 − ${put(s.z[i])})·${put(s.h[i])}`));
  forward("added", eq4, "added of the candidate", keeps ? "(1 − z) ⊙ g" : "z ⊙ g", (s, i) => (keeps ? `(1 − ${put(s.z[i])})·${put(s.g[i])}` : `${put(s.z[i])}·${put(s.g[i])}`));
  forward("h_new", eq4, "new state h′", "kept + added", (s, i) => `${put(s.kept[i])} + ${put(s.added[i])}`);
  if (network.output_kernel) {
    forward("hV", "16", "state times output weights", "h′V", (s, i) => dot(s.h_new, column(network.output_kernel, i)));
    forward("logits", "16", "scores o", "h′V + b_y", (s, i) => `${put(s.hV[i])} + ${put(network.output_bias[i])}`);
    const shown = { cross_entropy: "softmax(o)", binary_cross_entropy: "σ(o)", squared_error: "o" }[network.loss];
    forward("y", "16", "prediction", shown, (s, i) => (network.loss === "cross_entropy" ? `exp(${put(s.logits[i])}) / (${sum(s.logits.map((o) => `exp(${put(o)})`))})` : network.loss === "squared_error" ? put(s.logits[i]) : `σ(${put(s.logits[i])})`));
    forward("target", "", "target", "t", (s, i) => put(s.target[i]));
    forward("loss", "17", "loss of this step", { cross_entropy: "−Σ t·ln y", binary_cross_entropy: "−Σ (t·ln y + (1−t)·ln(1−y))", squared_error: "½ Σ (y − t)²" }[network.loss], (s) =>
      (network.loss === "squared_error" ? `½·(${sum(s.y.map((y, k) => `(${put(y)} − ${put(s.target[k])})²`))})`
        : network.loss === "cross_entropy" ? `−(${sum(s.y.map((y, k) => `${put(s.target[k])}·ln ${put(y)}`))})`
          : `−(${sum(s.y.map((y, k) => `${put(s.target[k])}·ln ${put(y)} + ${put(1 - s.target[k])}·ln(1 − ${put(y)})`))})`));
  }
  if (!network.targets.length) return lines;

  const losses = network.targets.filter(Boolean).length;
  const share = network.reduction === "mean" && losses > 1 ? `/${losses}` : "";
  back("d_logits", "18", "δo", `(y − t)${share}`, (s, i) => `(${put(s.y[i])} − ${put(s.target[i])})${share}`);
  back("dh_output", "20", "δh′ from this step's output", "δo Vᵀ", (s, i) => (s.d_logits ? dot(s.d_logits, T(network.output_kernel, i)) : "no loss at this step"));
  back("dh_future", "13", "δh′ from the future", "δh of the next step", (s, i) => put(s.dh_future[i]));
  back("dh_new", "6", "δh′", "output + future", (s, i) => `${put(s.dh_output[i])} + ${put(s.dh_future[i])}`);
  back("d_z", "7", "δz", keeps ? "δh′ ⊙ (h − g)" : "δh′ ⊙ (g − h)", (s, i) => (keeps ? `${put(s.dh_new[i])}·(${put(s.h[i])} − ${put(s.g[i])})` : `${put(s.dh_new[i])}·(${put(s.g[i])} − ${put(s.h[i])})`));
  back("d_a_z", "9", "δa_z", "δz ⊙ slope at z", (s, i) => `${put(s.d_z[i])}·${SLOPE[gate](s.z[i])}`);
  back("d_g", "8", "δg", keeps ? "δh′ ⊙ (1 − z)" : "δh′ ⊙ z", (s, i) => `${put(s.dh_new[i])}·${put(s.add[i])}`);
  back("d_a_g", "10", "δa_g", "δg ⊙ slope at g", (s, i) => `${put(s.d_g[i])}·(${SLOPE[phi](s.g[i])})`);
  if (after) {
    back("d_q", "11a", "δq", "δa_g ⊙ r", (s, i) => `${put(s.d_a_g[i])}·${put(s.r[i])}`);
    back("d_r", "11a", "δr", "δa_g ⊙ q", (s, i) => `${put(s.d_a_g[i])}·${put(s.q[i])}`);
  } else {
    back("d_rh", "11b", "δ(r⊙h)", "δa_g U_gᵀ", (s, i) => dot(s.d_a_g, T(U.g, i)));
    back("d_r", "11b", "δr", "δ(r⊙h) ⊙ h", (s, i) => `${put(s.d_rh[i])}·${put(s.h[i])}`);
  }
  back("d_a_r", "12", "δa_r", "δr ⊙ slope at r", (s, i) => `${put(s.d_r[i])}·${SLOPE[gate](s.r[i])}`);
  back("dh_direct", "13", "δh, direct path", keeps ? "δh′ ⊙ z" : "δh′ ⊙ (1 − z)", (s, i) => `${put(s.dh_new[i])}·${put(s.keep[i])}`);
  back("dh_candidate", "13", "δh, candidate path", after ? "δq U_gᵀ" : "δ(r⊙h) ⊙ r", (s, i) => (after ? dot(s.d_q, T(U.g, i)) : `${put(s.d_rh[i])}·${put(s.r[i])}`));
  back("dh_update_gate", "13", "δh, through the update gate", "δa_z U_zᵀ", (s, i) => dot(s.d_a_z, T(U.z, i)));
  back("dh_reset_gate", "13", "δh, through the reset gate", "δa_r U_rᵀ", (s, i) => dot(s.d_a_r, T(U.r, i)));
  back("dh", "13", "δh, handed to the step before", "sum of the paths", (s, i) => sum([s.dh_direct[i], s.dh_candidate[i], s.dh_update_gate[i], s.dh_reset_gate[i]].map(put)));
  back("dx", "14", "δx", "δa_z W_zᵀ + δa_r W_rᵀ + δa_g W_gᵀ", (s, i) => ["z", "r", "g"].map((k) => dot(s[`d_a_${k}`], T(W[k], i))).join(" + "));
  return lines;
}

/** What a total is: `name` as dW_z, new_W_z, loss; at row i and column j. */
export function totalInputs(network, { steps, totals }, weights, name, i, j) {
  const at = (value) => (value === undefined ? undefined : j === undefined ? value[i] : value[i][j]);
  if (name.startsWith("new_")) {
    const of = name.slice(4);
    return { eq: "21", formula: "weight − learning rate · gradient", text: `${put(at(weights[of]))} − ${put(network.learning_rate)}·${put(at(totals[`d${of}`]))}` };
  }
  const shares = steps.map((step) => at(step[name])).filter((value) => value !== undefined);
  return { eq: name.endsWith("_out") ? "19" : "15", formula: "sum of the steps' shares", text: sum(shares.map(put)) };
}
