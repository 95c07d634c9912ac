"""Messages of tensorflow-serving-api as nobody should send them, filled from a `random.Random`."""

import struct

from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)

from tests.serving.hostile import SIGNATURES, mutated

MODELS = ("text", "affine", "echo", "half/plus:two", "nix", "", "\u2603", "a" * 3000)
ALIASES = ("x", "b", "text", "inputs", "steps", "", "\u2603")
SIZES = (0, 0, 1, 1, 2, 3, 3, 5, -1, -(2**63), 2**31, 2**40, 2**62, 2**63 - 1)
FIELDS = (
    "float_val", "double_val", "int_val", "int64_val", "bool_val", "half_val", "string_val",
    "uint32_val", "uint64_val", "scomplex_val", "dcomplex_val",
)  # fmt: skip


def tensor(rng, proto):
    """Fill a TensorProto whose type, shape and values seldom agree."""
    proto.dtype = rng.choice((1, 1, 1, 7, 7, *range(31), 101, 2**31 - 1))
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 70, 300))):
        proto.tensor_shape.dim.add(size=rng.choice(SIZES))
    proto.tensor_shape.unknown_rank = rng.random() < 0.05
    if rng.random() < 0.4:
        proto.tensor_content = rng.choice(
            (
                b"\x80" * 300,
                b"\xff" * 12,
                struct.pack("<3f", 1, 2, 3),
                rng.randbytes(rng.randrange(40)),
                b"\x04good",
            )
        )
    for field in rng.sample(FIELDS, rng.choice((0, 1, 1, 2))):
        listed = getattr(proto, field)
        count = rng.choice((0, 1, 1, 3, 3, 100))
        if field == "string_val":
            listed.extend(rng.randbytes(rng.randrange(9)) for _ in range(count))
        elif field == "bool_val":
            listed.extend(rng.random() < 0.5 for _ in range(count))
        elif field in ("float_val", "double_val", "scomplex_val", "dcomplex_val"):
            listed.extend(rng.choice((0.5, float("nan"), float("inf"))) for _ in range(count))
        else:
            signed = field in ("int_val", "int64_val", "half_val")
            wide = 63 if "64" in field else 31
            listed.extend(rng.randrange(-signed << wide, 1 << wide) for _ in range(count))
    return proto


def spec(rng, message):
    """Set the name of a model, a signature and a version, seldom ones that exist."""
    message.name = rng.choice(MODELS)
    message.signature_name = rng.choice(SIGNATURES)
    kind = rng.random()
    if kind < 0.1:
        message.version.value = rng.choice((1, 3, -1, 2**63 - 1))
    elif kind < 0.2:
        message.version_label = rng.choice(("stable", "nix", "\u2603"))


def examples(rng, message):
    """Fill an Input."""
    listed = message.example_list.examples
    if rng.random() < 0.3:
        listed = message.example_list_with_context.examples
        message.example_list_with_context.context.features.feature["text"].Clear()
    for _ in range(rng.choice((0, 1, 1, 3))):
        feature = listed.add().features.feature[rng.choice(("text", "x", "nix"))]
        kind = rng.choice(("bytes_list", "float_list", "int64_list", None))
        if kind:
            one = {"bytes_list": b"\xff", "float_list": float("nan"), "int64_list": -1}[kind]
            getattr(feature, kind).value.extend([one] * rng.choice((0, 1, 2)))


def predict(rng):
    """A PredictRequest."""
    message = predict_pb2.PredictRequest()
    if rng.random() < 0.25:
        message.model_spec.name = "half/plus:two"
        good = message.inputs["x"]
        good.dtype = 1
        good.tensor_shape.dim.add(size=rng.choice((1, 2, 3, 1000)))
        good.float_val.append(2.0)
        return message
    if rng.random() < 0.95:
        spec(rng, message.model_spec)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        tensor(rng, message.inputs[rng.choice(ALIASES)])
    message.output_filter.extend(rng.choices(("y", "x", "", "total"), k=rng.choice((0, 0, 1, 3))))
    return message


def call(rng):
    """(method, serialized request) of any method that changes nothing."""
    kind = rng.choice(("Predict",) * 4 + ("Classify", "Regress", "MultiInference", "Metadata",
                                          "Status"))  # fmt: skip
    if kind == "Predict":
        method, message = "PredictionService/Predict", predict(rng)
    elif kind in ("Classify", "Regress"):
        method = f"PredictionService/{kind}"
        module = classification_pb2 if kind == "Classify" else regression_pb2
        message = getattr(
            module, f"{'Classification' if kind == 'Classify' else 'Regression'}Request"
        )()
        spec(rng, message.model_spec)
        examples(rng, message.input)
    elif kind == "MultiInference":
        method, message = "PredictionService/MultiInference", inference_pb2.MultiInferenceRequest()
        for _ in range(rng.choice((0, 1, 2))):
            task = message.tasks.add(
                method_name=rng.choice(
                    ("tensorflow/serving/classify", "tensorflow/serving/regress", "")
                )
            )
            spec(rng, task.model_spec)
        examples(rng, message.input)
    elif kind == "Metadata":
        method = "PredictionService/GetModelMetadata"
        message = get_model_metadata_pb2.GetModelMetadataRequest(
            metadata_field=rng.choices(("signature_def", "", "x"), k=rng.choice((0, 1, 2)))
        )
        spec(rng, message.model_spec)
    else:
        method, message = (
            "ModelService/GetModelStatus",
            get_model_status_pb2.GetModelStatusRequest(),
        )
        spec(rng, message.model_spec)
    raw = message.SerializeToString(deterministic=True)
    if rng.random() < 0.25:
        raw = mutated(rng, raw) if rng.random() < 0.9 else rng.randbytes(rng.randrange(200))
    return f"/tensorflow.serving.{method}", raw
