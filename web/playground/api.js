/** The server: its REST API and what it says of itself. A token is kept in memory only. */
import { parse, write } from "../shared/json.js";

let token = "";
let askForToken = async () => "";

/** What to ask for a token with: a function that returns one, or an empty string. */
export function onTokenWanted(ask) {
  askForToken = ask;
}

export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const SILENT = "The server does not answer. It may have been stopped; the page goes on once it answers again.";
let asking = null;

async function send(path, options = {}) {
  for (let attempt = 0; ; attempt++) {
    const used = token;
    const headers = { ...options.headers, ...(used ? { Authorization: `Bearer ${used}` } : {}) };
    let response;
    let text;
    try {
      response = await fetch(path, { ...options, headers, credentials: "omit", referrerPolicy: "no-referrer" });
      text = await response.text();
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ServerError(SILENT, 0);
    }
    if (response.status === 401) {
      if (used === token) {
        asking ??= askForToken(used !== "").finally(() => (asking = null));
        token = await asking;
      }
      if (token && attempt < 20) continue;
      throw new ServerError("The server wants a token, and none was given.", 401);
    }
    if (response.ok) return text;
    throw new ServerError(errorText(text) || `The server answers ${response.status} ${response.statusText}.`, response.status);
  }
}

function errorText(text) {
  try {
    return String(JSON.parse(text).error ?? "");
  } catch {
    return "";
  }
}

export const hasToken = () => token !== "";

export const server = async () => parse(await send("server.json"));
export const models = async () => parse(await send("../models")).models;
export const metrics = (path) => send(path);

const named = (target) => `model=${encodeURIComponent(target.model)}&version=${target.version}`;

/** A file that came with a version, or null where it has none. */
const extra = async (name, target) => parse(await send(`${name}.json?${named(target)}`));

export const card = (target) => extra("card", target);
export const golden = (target) => extra("golden", target);

/** The path of a model, version or label, as REST has it. */
export function modelPath({ model, version, label }) {
  const which = label ? `/labels/${encodeURIComponent(label)}` : version ? `/versions/${version}` : "";
  return `/v1/models/${encodeURIComponent(model)}${which}`;
}

/** Signatures by name. */
export async function signatures(target) {
  const answer = parse(await send(`${modelPath(target)}/metadata`));
  const found = answer.metadata.signature_def.signature_def;
  return Object.fromEntries(Object.entries(found).filter(([name]) => !name.startsWith("__")));
}

/** The outputs of Predict, each a list with an item per row. */
export async function predict(target, signature, inputs, signal) {
  const body = write({ signature_name: signature, inputs });
  const answer = parse(await send(`${modelPath(target)}:predict`, { method: "POST", body, signal, headers: { "Content-Type": "application/json" } }));
  const { outputs } = answer;
  const names = signaturesOutputs.get(key(target, signature));
  // With one output REST leaves its name out.
  return names?.length === 1 && (Array.isArray(outputs) || typeof outputs !== "object") ? { [names[0]]: outputs } : outputs;
}

/** For each example a list of [label, score]. */
export async function classify(target, signature, examples) {
  const body = write({ signature_name: signature, examples });
  return parse(await send(`${modelPath(target)}:classify`, { method: "POST", body, headers: { "Content-Type": "application/json" } })).results;
}

const signaturesOutputs = new Map();
const key = (target, signature) => `${modelPath(target)}:${signature}`;

/** Note the names of outputs, for `predict`. */
export function noteSignatures(target, found) {
  for (const [name, signature] of Object.entries(found)) signaturesOutputs.set(key(target, name), Object.keys(signature.outputs));
}

/** Runs the newest of many requests: one at a time, and of those that come meanwhile the last. */
export class Newest {
  #busy = false;
  #next = null;

  async run(work) {
    if (this.#busy) {
      this.#next = work;
      return;
    }
    this.#busy = true;
    try {
      await work();
    } finally {
      this.#busy = false;
      const next = this.#next;
      this.#next = null;
      if (next) this.run(next);
    }
  }
}
