/** Series as CSV, in and out. */

const MISSING = new Set(["", "na", "nan", "null", "none", "-", "?"]);

/**
 * Read a table of numbers, with or without names and times.
 * @returns {{names: string[]|null, times: string[]|null, rows: (number|null)[][]}}
 * @throws {Error} With the line and what is wrong, in words.
 */
export function readCsv(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).map((line, i) => [line, i + 1]).filter(([line]) => line.trim());
  if (!lines.length) throw new Error("The text holds no line of a table.");
  const separator = [";", "\t", ","].find((one) => lines[0][0].includes(one)) ?? ",";
  const table = lines.map(([line, at]) => [split(line, separator), at]);
  const isNumber = (cell) => MISSING.has(cell.toLowerCase()) || Number.isFinite(Number(cell));
  const first = table[0][0];
  const hasHead = first.some((cell) => !isNumber(cell) && !Number.isFinite(Date.parse(cell))) || (table.length > 1 && first.every((cell) => !isNumber(cell)) && table[1][0].some(isNumber));
  const body = hasHead ? table.slice(1) : table;
  if (!body.length) throw new Error("The table has a line of names, and no numbers below.");
  const timed = body.some(([cells]) => !isNumber(cells[0]));
  const width = first.length;
  const rows = body.map(([cells, at]) => {
    if (cells.length !== width) throw new Error(`Line ${at} has ${cells.length} cells, expected ${width} as in the first line.`);
    return cells.slice(timed ? 1 : 0).map((cell, k) => {
      if (MISSING.has(cell.toLowerCase())) return null;
      const value = Number(cell);
      if (!Number.isFinite(value)) throw new Error(`Line ${at}, column ${k + (timed ? 2 : 1)}: expected a number or nothing, got “${cell.slice(0, 40)}”.`);
      return value;
    });
  });
  return { names: hasHead ? first.slice(timed ? 1 : 0) : null, times: timed ? body.map(([cells]) => cells[0]) : null, rows };
}

function split(line, separator) {
  const cells = [];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const letter = line[i];
    if (quoted && letter === '"' && line[i + 1] === '"') { cell += '"'; i++; }
    else if (letter === '"') quoted = !quoted;
    else if (letter === separator && !quoted) { cells.push(cell.trim()); cell = ""; }
    else cell += letter;
  }
  cells.push(cell.trim());
  return cells;
}

export function writeCsv(rows) {
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // no formula in a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
