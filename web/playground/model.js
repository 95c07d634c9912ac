/** A version of a model as the page knows it. */
import * as api from "./api.js";

const cache = new Map();

/** Versions and labels of a model that serve, newest first. */
export function targets(entry) {
  const serving = entry.versions.filter((version) => version.state === "AVAILABLE");
  const labels = serving.flatMap((version) => version.labels.map((label) => ({
    id: `label:${label}`, name: `${label} (version ${version.version})`, model: entry.name, version: version.version, label })));
  const versions = serving.map((version) => ({ id: `${version.version}`, name: `${version.version}`, model: entry.name, version: version.version }));
  return [...versions, ...labels];
}

/** Signatures, card and golden requests of a version; they do not change. */
export async function loadModel(target) {
  const key = JSON.stringify([target.model, target.version]);
  if (!cache.has(key)) {
    const exact = { model: target.model, version: target.version };
    cache.set(key, Promise.all([api.signatures(exact), api.card(exact), api.golden(exact)])
      .then(([signatures, card, golden]) => ({ signatures, card: card ?? {}, golden: Array.isArray(golden) ? golden : [] })));
    cache.get(key).catch(() => cache.delete(key));
  }
  const found = await cache.get(key);
  api.noteSignatures(target, found.signatures);
  return { ...found, target };
}

export const dims = (info) => (info.tensor_shape?.unknown_rank ? null : (info.tensor_shape?.dim ?? []).map((dim) => Number(dim.size)));
const isText = (info) => info.dtype === "DT_STRING" && (dims(info)?.length ?? 1) === 1;

/** The view that fits: `text`, `forecast`, or none. */
export function kindOf(signatures) {
  const inputs = signatures.serving_default?.inputs ?? {};
  if (textInput(signatures)) return "text";
  return inputs.history && dims(inputs.history)?.length === 3 ? "forecast" : "";
}

/** The name of the one input of texts; empty where the model takes something else. */
export function textInput(signatures) {
  const inputs = Object.entries(signatures.serving_default?.inputs ?? {});
  return inputs.length === 1 && isText(inputs[0][1]) ? inputs[0][0] : "";
}

/** Names of the classes, in the order of the scores; numbers where nobody says. */
export function classNames(card, count) {
  const names = Array.isArray(card.classes) && card.classes.length === count ? card.classes : null;
  return Array.from({ length: count }, (_, i) => (names ? String(names[i]) : count === 1 ? "estimate" : `class ${i}`));
}

/** Golden rows of an input of a signature, none twice. */
export function goldenRows(golden, signature, name) {
  const seen = new Map();
  for (const request of golden) {
    if (request.signature_name !== signature || !request.inputs?.[name]) continue;
    request.inputs[name].forEach((row, i) => {
      const key = JSON.stringify(row);
      if (!seen.has(key)) seen.set(key, { row, request, index: i });
    });
  }
  return [...seen.values()];
}
