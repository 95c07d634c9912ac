/** The present request, as programs would send it. */
import { modelPath } from "./api.js";
import { write } from "../shared/json.js";

const shell = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;

/** A literal of Python. */
export function python(value) {
  if (typeof value === "string") return JSON.stringify(value).replace(/\u2028|\u2029/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
  if (typeof value === "number") return Number.isNaN(value) ? 'float("nan")' : Number.isFinite(value) ? String(value) : `float("${value > 0 ? "" : "-"}inf")`;
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value && typeof value === "object") return `{${Object.entries(value).map(([key, item]) => `${python(key)}: ${python(item)}`).join(", ")}}`;
  return value === null || value === undefined ? "None" : value ? "True" : "False";
}

/** Named programs that send `inputs` to a signature of a version. */
export function snippets({ target, signature, inputs, server, origin }) {
  const url = `${origin}${modelPath(target)}:predict`;
  const body = write({ signature_name: signature, inputs });
  const host = new URL(origin).hostname;
  const grpc = `${host}:${server.grpc_port}`;
  const token = server.tokens;
  const which = target.label ? `, label=${python(target.label)}` : target.version ? `, version=${target.version}` : "";
  const header = token ? ` -H "Authorization: Bearer $TOKEN"` : "";
  const spec = target.label ? [`request.model_spec.version_label = ${python(target.label)}`] : target.version ? [`request.model_spec.version.value = ${target.version}`] : [];
  const channel = server.grpc_tls ? `grpc.secure_channel(${python(grpc)}, grpc.ssl_channel_credentials(open("cert.pem", "rb").read()))` : `grpc.insecure_channel(${python(grpc)})`;
  const found = {
    curl: `curl -sS${header} -d ${shell(body)} \\\n    ${shell(url)}`,
    "Python client": [
      ...(token ? ["import os", ""] : []),
      "from gru_serving.client import connect", "",
      `with connect(${python(origin)}${token ? ', token=os.environ["TOKEN"]' : ""}) as client:`,
      `    print(client.predict(${python(inputs)}, ${python(target.model)}, signature=${python(signature)}${which}))`].join("\n"),
    gRPC: [
      ...(token ? ["import os", ""] : []), "import grpc", "import tensorflow as tf",
      "from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc", "",
      "request = predict_pb2.PredictRequest()",
      `request.model_spec.name = ${python(target.model)}`,
      `request.model_spec.signature_name = ${python(signature)}`, ...spec,
      ...Object.entries(inputs).map(([name, value]) => `request.inputs[${python(name)}].CopyFrom(\n    tf.make_tensor_proto(${python(value)}, dtype=${python(typeof [value].flat(Infinity)[0] === "string" ? "string" : "float32")})\n)`),
      `channel = ${channel}`,
      "stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)",
      `print(stub.Predict(request, 30.0${token ? ', metadata=[("authorization", "Bearer " + os.environ["TOKEN"])]' : ""}))`].join("\n"),
    JavaScript: [
      `const response = await fetch(${JSON.stringify(url)}, {`, `  method: "POST",`,
      `  headers: { "Content-Type": "application/json"${token ? ", Authorization: `Bearer ${token}`" : ""} },`,
      body.includes("NaN") ? `  body: ${JSON.stringify(body)},` : `  body: JSON.stringify(${body}),`,
      "});", "console.log((await response.json()).outputs);"].join("\n"),
  };
  if (!server.grpc_port) delete found.gRPC;
  return found;
}
