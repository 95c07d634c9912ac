/** JSON as TensorFlow Serving reads and writes it: with NaN and infinities. */

const ODD = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;
const MARK = "\u0000number:";

export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    const marked = text.replace(ODD, (part) => (part[0] === '"' ? part : JSON.stringify(MARK + part)));
    return JSON.parse(marked, (key, value) =>
      typeof value === "string" && value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value);
  }
}

export function write(value) {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value && typeof value === "object") {
    return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`).join(",")}}`;
  }
  return JSON.stringify(value ?? null);
}
