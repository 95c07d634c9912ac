"""What the codecs let through, run in real sessions.

TensorFlow's own code must survive whatever a client can make it work on. Since it may not, this is
run as a process of its own, `python -m tests.serving.onnx_fuzz 0 300 MODEL...`: it writes the
number of each request before the request is run, so that its last line names the one that ended it.
"""

import random
import sys
from pathlib import Path

from gru_serving.codecs.signature import CLASSIFY_METHOD, REGRESS_METHOD
from gru_serving.codecs.tensor_proto import decode_inputs
from gru_serving.engine.examples import classify, regress
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import MODEL_FILE
from gru_serving.engine.tflite.session import TfliteSession
from gru_serving.errors import ServingError
from gru_serving.protos.predict_pb2 import PredictRequest

PATIENCE_MS = 20_000
MOST_ELEMENTS = 300
STRINGS = (
    b"", b"good", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b" ", b"good bad " * 50, b"a" * 3000,
    "\u2603\u0301\u200d\U0001f600".encode(), b"%s%n", b"\n\r\t", b"<br />", b"'" * 40,
)  # fmt: skip
NUMBERS = (0, 1, 2, -1, 3, 100, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**62)
REALS = (0.0, -0.0, 1.0, -1.5, 370.2, 1e-45, 1e30, -1e38, float("nan"), float("inf"))


def sizes(rng, declared):
    """The shape of a tensor: as in the signature, close to it, or of any rank."""
    kind = rng.random()
    if kind < 0.35 and declared is not None:
        chosen = [one if one >= 0 else rng.choice((0, 1, 2, 7, 160)) for one in declared]
    elif kind < 0.5 and declared is not None:
        chosen = [rng.choice((0, 1, 1, 2, 3)) for _ in declared]
        if chosen and rng.random() < 0.5:
            chosen = chosen[1:] if rng.random() < 0.5 else [*chosen, rng.choice((0, 1, 2))]
    else:
        rank = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 254, 255))
        chosen = [rng.choice((0, 1, 1, 1, 2)) for _ in range(rank)]
        if 0 in chosen and rng.random() < 0.7:
            chosen = [one or 1 for one in chosen]
    count = 1
    for i, one in enumerate(chosen):
        if one and count * one > MOST_ELEMENTS:
            chosen[i] = one = 1
        count *= one
    if 0 in chosen and rng.random() < 0.2:
        chosen[rng.randrange(len(chosen))] = rng.choice((2**31, 2**40, 2**62))
    return chosen


def fill(rng, proto, info):
    """A tensor that the codec accepts more often than not."""
    proto.dtype = info.dtype if rng.random() < 0.93 else rng.choice((1, 3, 7, 9, 10, 18, 23))
    chosen = sizes(rng, info.shape)
    for size in chosen:
        proto.tensor_shape.dim.add(size=size)
    count = 1
    for size in chosen:
        count *= size
    listed = rng.choice((count, count, 1, 0)) if count <= MOST_ELEMENTS else 0
    for _ in range(listed):
        proto.string_val.append(rng.choice(STRINGS))
        proto.float_val.append(rng.choice(REALS))
        proto.double_val.append(rng.choice(REALS))
        proto.int64_val.append(rng.choice(NUMBERS))
        proto.int_val.append(rng.choice(NUMBERS[:-1]))
        proto.half_val.append(rng.randrange(1 << 16))
        proto.bool_val.append(rng.random() < 0.5)
        proto.uint32_val.append(rng.randrange(1 << 32))
        proto.uint64_val.append(rng.randrange(1 << 63))
        proto.scomplex_val.extend(rng.choices(REALS, k=2))
        proto.dcomplex_val.extend(rng.choices(REALS, k=2))


def example(rng, text=b"text"):
    """A serialized tf.Example, often a broken one."""
    from tensorflow.core.example.example_pb2 import Example

    one = Example()
    for name in rng.sample((text.decode(), "x", "", "inputs"), rng.choice((0, 1, 2))):
        feature = one.features.feature[name]
        kind = rng.choice(("bytes_list", "float_list", "int64_list", None))
        count = rng.choice((0, 1, 1, 1, 2, 200))
        if kind:
            pool = {"bytes_list": STRINGS, "float_list": REALS, "int64_list": NUMBERS}[kind]
            getattr(feature, kind).value.extend(rng.choices(pool, k=count))
    raw = bytearray(one.SerializeToString())
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(raw) + 1)
        raw[at : at + rng.choice((0, 1, 4))] = rng.randbytes(rng.choice((0, 1, 9)))
    return bytes(raw)


def tensors(rng, signature):
    """Inputs that the codec lets through; raises ServingError for others."""
    request = PredictRequest()
    for alias, info in signature.inputs.items():
        fill(rng, request.inputs[alias], info)
    return decode_inputs(PredictRequest.FromString(request.SerializeToString()))


def ask(predictor, number):
    """Run the request with that number; returns whether it was answered."""
    rng = random.Random(number)
    name = rng.choice(sorted(predictor.signatures))
    signature = predictor.signatures[name]
    try:
        if rng.random() < 0.5 and signature.method_name in (CLASSIFY_METHOD, REGRESS_METHOD):
            examples = [example(rng) for _ in range(rng.choice((0, 1, 1, 3, 60)))]
            run = classify if signature.method_name == CLASSIFY_METHOD else regress
            run(predictor, name, examples).run(PATIENCE_MS)
            return True
        predictor.predict(tensors(rng, signature), name, (), PATIENCE_MS)
    except ServingError:
        return False
    return True


def note(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(first, count, *directories):
    for directory in directories:
        lite = Path(directory, MODEL_FILE)
        predictor = Predictor(TfliteSession(lite) if lite.exists() else directory)
        answered = 0
        for number in range(int(first), int(first) + int(count)):
            note(directory, number)
            answered += ask(predictor, number)
        note("answered", answered)


if __name__ == "__main__":
    main(*sys.argv[1:])
