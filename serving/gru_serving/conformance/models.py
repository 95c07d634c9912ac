"""The kit's models: small SavedModels made with TensorFlow, and what starts a server of them."""

import shutil
from pathlib import Path
from typing import Any

import tensorflow as tf

from gru_serving.conformance.kit import CONFIG
from gru_serving.protos import types_pb2
from gru_serving.protos.prediction_log_pb2 import PredictionLog

VOCABULARY = ["good", "bad", "great", "awful"]
_BATCHING = "max_batch_size { value: 32 } batch_timeout_micros { value: 2000 }"
FLAGS = (
    *("enable_batching", "enable_per_model_batching_parameters"),
    *("enable_grpc_healthcheck_service", "rest_api_enable_cors_support"),
    *("rest_api_timeout_in_ms=3000", "max_num_load_retries=0"),
    "allow_version_labels_for_unavailable_models",
)
"""Flags with which a server of the models is asked, without their dashes."""
IMAGE = "tensorflow/serving:2.20.0"
IN_CONTAINER = "/models"


class Text(tf.Module):
    """Counts good and bad words: a string input, a vocabulary file among the assets."""

    def __init__(self, vocabulary_file: str) -> None:
        super().__init__()
        initializer = tf.lookup.TextFileInitializer(
            vocabulary_file,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)
        self.labels = tf.constant(["negative", "positive"])

    def scores(self, text: Any) -> Any:
        """Return the probabilities of both labels, [rows, 2]."""
        words = self.table.lookup(tf.strings.split(text)).to_tensor(default_value=-1)
        positive = tf.reduce_sum(tf.cast((words == 0) | (words == 2), tf.float32), 1)
        negative = tf.reduce_sum(tf.cast((words == 1) | (words == 3), tf.float32), 1)
        return tf.nn.softmax(tf.stack([negative, positive], 1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text: Any) -> Any:
        """Answer texts."""
        scores = self.scores(text)
        best = tf.argmax(scores, 1)
        return {
            "label": tf.gather(self.labels, best),
            "probability": tf.reduce_max(scores, 1),
            "scores": scores,
        }

    def parsed(self, examples: Any) -> Any:
        """Return the feature `text` of serialized examples."""
        return tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def classify(self, inputs: Any) -> Any:
        """Answer Classify."""
        scores = self.scores(self.parsed(inputs))
        classes = tf.tile(self.labels[tf.newaxis], [tf.shape(scores)[0], 1])
        return {"classes": classes, "scores": scores}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def regress(self, inputs: Any) -> Any:
        """Answer Regress."""
        return {"outputs": self.scores(self.parsed(inputs))[:, 1:]}


class Affine(tf.Module):
    """y = x W + b, two float inputs; and the sum of the inputs without a batch dimension."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.kernel = tf.Variable(factor * tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3], tf.float32, name="x"),
            tf.TensorSpec([None, 1], tf.float32, name="b"),
        ]
    )
    def serve(self, x: Any, b: Any) -> Any:
        """Answer two inputs with two outputs."""
        return {"y": x @ self.kernel + b, "doubled": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def total(self, x: Any) -> Any:
        """Answer with a scalar."""
        return {"total": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="steps")])
    def spin(self, steps: Any) -> Any:
        """Takes as long as it is told to."""
        done = tf.while_loop(
            lambda i, _: i < steps,
            lambda i, x: (i + 1, tf.sin(x) + 1.0),
            (tf.constant(0, tf.int64), tf.constant(0.5)),
        )
        return {"x": done[1]}


ECHOED = (
    *("float64", "float16", "bfloat16", "bool", "string", "complex64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


class Echo(tf.Module):
    """Returns its input; one signature per element type."""

    @staticmethod
    def echo(name: str, output: str = "x") -> Any:
        """Return the function of one element type."""
        spec = tf.TensorSpec(None, tf.as_dtype(name), name="x")
        return tf.function(lambda x: {output: tf.identity(x)}, input_signature=[spec])


def save_text(directory: Path) -> None:
    """Save the text model."""
    vocabulary = directory.parent / "vocabulary.txt"
    directory.parent.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("\n".join(VOCABULARY))
    module = Text(str(vocabulary))
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": module.serve,
            "classify": module.classify,
            "regress": module.regress,
        },
    )
    # The copy among the assets must suffice.
    vocabulary.unlink()


def save_affine(directory: Path, factor: float = 1.0) -> None:
    """Save the affine model; its versions differ by a factor."""
    module = Affine(factor)
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": module.serve,
            "total": module.total,
            "spin": module.spin,
        },
    )


def save_echo(directory: Path) -> None:
    """Save the echo model."""
    module = Echo()
    functions = {name: Echo.echo(name) for name in ECHOED}
    functions["binary"] = Echo.echo("string", "x_bytes")
    module.functions = functions
    tf.saved_model.save(module, str(directory), signatures=functions)


def save_half_plus_two(directory: Path, factor: float = 0.5) -> None:
    """Save a TF1 SavedModel as upstream's tests have: reference variables, tf.Example parsing.

    The signatures that take examples share their input tensor.
    """
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        half = v1.get_variable("a", initializer=factor, use_resource=False)
        two = v1.get_variable("b", initializer=2.0, use_resource=False)
        y = tf.add(tf.multiply(half, x), two, name="y")
        serialized = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = v1.parse_example(serialized, {"x": v1.FixedLenFeature([1], tf.float32)})
        regressed = tf.add(tf.multiply(half, parsed["x"]), two)
        named = tf.strings.as_string(regressed, precision=1)
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        build = v1.saved_model.build_signature_def
        builder = v1.saved_model.Builder(str(directory))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={
                "serving_default": build(
                    {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"
                ),
                "regress_x_to_y": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                # Like the one in TF Serving's documentation.
                "tensorflow/serving/regress": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                "classify_x_to_y": build(
                    {"inputs": info(serialized)},
                    {"scores": info(regressed)},
                    "tensorflow/serving/classify",
                ),
                "only_classes": build(
                    {"inputs": info(serialized)},
                    {"classes": info(named)},
                    "tensorflow/serving/classify",
                ),
                "flat_scores": build(
                    {"inputs": info(serialized)},
                    {"scores": info(tf.reshape(regressed, [-1]))},
                    "tensorflow/serving/classify",
                ),
                "wide_outputs": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(tf.tile(regressed, [1, 2]))},
                    "tensorflow/serving/regress",
                ),
                "text_outputs": build(
                    {"inputs": info(serialized)},
                    {"outputs": info(named)},
                    "tensorflow/serving/regress",
                ),
                "other_input_name": build(
                    {"x": info(serialized)},
                    {"outputs": info(regressed), "scores": info(regressed)},
                    "tensorflow/serving/regress",
                ),
                "no_outputs_named_so": build(
                    {"inputs": info(serialized)},
                    {"y": info(regressed)},
                    "tensorflow/serving/regress",
                ),
            },
        )
        builder.save()


def save_all(root: Path) -> None:
    """Save the models of the tests and the kit, each under its own base path.

    Args:
        root: Folder for the base paths.
    """
    save_text(root / "text" / "1")
    save_affine(root / "affine" / "1")
    save_affine(root / "affine" / "3", 10.0)
    save_echo(root / "echo" / "00000123")
    save_half_plus_two(root / "half_plus_two" / "1")


def make_models(root: Path) -> None:
    """Save all that a server needs to be asked the cases: models, their configuration, flags.

    `models.config` names the folder as it is here, `container.config` as /models.

    Args:
        root: Folder that is made; it must not exist, or be empty.

    Raises:
        FileExistsError: The folder has files.
    """
    if root.exists() and any(root.iterdir()):
        raise FileExistsError(17, "expected a new or an empty folder; it has files", str(root))
    save_all(root)
    half = root / "half_plus_two" / "1"
    batched = Path(shutil.copytree(half, root / "batched" / "1"))
    (batched / "batching_params.pbtxt").write_text(_BATCHING, "utf-8")
    for name, signature in (("warm", "serving_default"), ("cold", "no_such_signature")):
        _write_warmup(Path(shutil.copytree(half, root / name / "1")), signature)
    (root / "broken" / "1").mkdir(parents=True)
    (root / "broken" / "1" / "saved_model.pb").write_bytes(b"this is no SavedModel")
    for file, place in (("models.config", root.resolve()), ("container.config", IN_CONTAINER)):
        text = CONFIG.read_text("utf-8").replace("$models", str(place))
        (root / file).write_text(text, "utf-8")


def _write_warmup(version: Path, signature: str) -> None:
    """Write a request that is run when the version is loaded."""
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    tensor = request.inputs["x"]
    tensor.dtype = types_pb2.DT_FLOAT
    tensor.tensor_shape.dim.add(size=1)
    tensor.float_val.append(2.0)
    (version / "assets.extra").mkdir()
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(log.SerializeToString())


def command_lines(root: Path) -> dict[str, str]:
    """Return the command lines that start a server of the models, by the name of the server.

    Args:
        root: Folder of `make_models`.
    """
    flags = " ".join(f"--{flag}" for flag in FLAGS)
    here = root.resolve()
    return {
        "gru-serve": f"gru-serve serve --port=8500 --rest_api_port=8501 "
        f"--model_config_file={here}/models.config {flags}",
        "tensorflow/serving": f"docker run --rm -p 8500:8500 -p 8501:8501 "
        f"-v {here}:{IN_CONTAINER}:ro {IMAGE} "
        f"--model_config_file={IN_CONTAINER}/container.config {flags}",
    }
