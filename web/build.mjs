/** Builds the pages of the package from their modules; `make pages` runs it. */
import { createHash } from "node:crypto";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const root = new URL("..", import.meta.url);
const here = new URL(".", import.meta.url);
const licence = (await readFile(new URL("node_modules/uplot/LICENSE", here), "utf8")).trim();
const notice = `/*! Charts: uPlot ${JSON.parse(await readFile(new URL("node_modules/uplot/package.json", here))).version}\n${licence}\n*/`;

async function bundle(entry, charts) {
  const found = await build({
    entryPoints: [new URL(entry, here).pathname], bundle: true, minify: true, write: false, charset: "utf8",
    format: "esm", target: ["chrome115", "firefox115", "safari16.4"], legalComments: "none",
  });
  return (charts ? `${notice}\n` : "") + found.outputFiles[0].text;
}

async function styles(...files) {
  const css = (await Promise.all(files.map((file) => readFile(new URL(file, here), "utf8")))).join("\n");
  const found = await build({ stdin: { contents: css, loader: "css" }, minify: true, write: false, legalComments: "none" });
  return found.outputFiles[0].text;
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** One file that holds all it needs; `__TITLE__`, `__BODY__` and `__DATA__` are left for who writes a page. */
function selfContained(script, style) {
  const inner = script.replaceAll("</script", "<\\/script");
  const policy = `default-src 'none'; script-src ${hash(inner)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,"><title>__TITLE__</title><style>${style}</style></head>
<body><main id="page">__BODY__</main>
<script type="application/json" id="data">__DATA__</script>
<script type="module">${inner}</script></body></html>
`;
}

async function put(path, text) {
  const place = new URL(path, root);
  await mkdir(new URL(".", place), { recursive: true });
  await writeFile(place, text);
  console.log(`${String(Buffer.byteLength(text)).padStart(8)}  ${path}`);
}

const UPLOT = "node_modules/uplot/dist/uPlot.min.css";
const playground = "serving/gru_serving/server/playground/assets/";
await put(`${playground}playground.js`, await bundle("playground/main.js", true));
await put(`${playground}playground.css`, await styles(UPLOT, "shared/theme.css", "playground/playground.css"));
for (const name of ["index.html", "icon.svg"]) await put(playground + name, await readFile(new URL(`playground/${name}`, here), "utf8"));
{
  await put("training/gru_training/runs/report.html", selfContained(await bundle("report/main.js", true), await styles(UPLOT, "shared/theme.css", "report/report.css")));
  if (process.argv[2] !== "playground") await put("keras_gru/teaching/trace.html", selfContained(await bundle("trace/main.js", false), await styles("shared/theme.css", "trace/trace.css")));
}
