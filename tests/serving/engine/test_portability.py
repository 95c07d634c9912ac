"""Whatever must not be in an export is found in its graph."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from gru_serving.engine.portability import portability_faults


@pytest.mark.parametrize("name", ["one", "both"])
def test_exports_have_no_faults(exports, name):
    assert portability_faults(exports.version(name)) == []


class Impure(tf.Module):
    """One signature for each thing that must not be in an export."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def pure(self, x):
        return {"y": tf.map_fn(lambda v: v + self.count, x)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def random(self, x):
        return {"y": tf.map_fn(lambda v: v + tf.random.uniform(()), x)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def writes(self, x):
        self.count.assign_add(1.0)
        return {"y": x + self.count}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def python(self, x):
        return {"y": tf.ensure_shape(tf.numpy_function(np.sin, [x], tf.float32), (None,))}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def compiled(self, x):
        return {"y": tf.function(tf.sin, jit_compile=True)(x)}


def test_portability_faults_are_found(tmp_path):
    module = Impure()
    signatures = {
        name: getattr(module, name) for name in ("pure", "random", "writes", "python", "compiled")
    }
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    found: dict[str, set[str]] = {}
    for fault in portability_faults(tmp_path):
        found.setdefault(fault.signature, set()).add(fault.reason)
    assert found == {
        "random": {"draws random numbers"},
        "writes": {"writes a variable"},
        "python": {"needs the Python process that made it"},
        "compiled": {"needs XLA, which is disabled in TensorFlow Serving"},
    }


def _twice(x):
    return tf.ensure_shape(tf.concat([x, x], 1), (None, 2, 2, 8))


WEIGHTS = np.random.default_rng(5).normal(size=(8, 4)).astype(np.float32)
UNSAFE = {
    "matrix": tf.matmul,
    "transposed": lambda x, w: tf.matmul(x, tf.transpose(w), transpose_b=True),
    "ones_before": lambda x, w: tf.matmul(x, w[tf.newaxis, tf.newaxis]),
    "in_a_loop": lambda x, w: tf.map_fn(lambda _: tf.matmul(x, w), tf.range(2.0))[0],
}
SAFE = {
    "reshaped": lambda x, w: tf.reshape(tf.matmul(tf.reshape(x, (-1, 8)), w), (-1, 1, 2, 4)),
    "tensordot": lambda x, w: tf.tensordot(x, w, 1),
    "einsum": lambda x, w: tf.einsum("abcd,de->abce", x, w),
    "rank_3": lambda x, w: tf.matmul(x[:, 0], w)[:, tf.newaxis],
    "of_each_row": lambda x, w: tf.matmul(x, tf.ones_like(x[..., :1, :1]) * w),
    "two_of_each": lambda x, w: tf.matmul(_twice(x), w)[:, :1],
}


class Products(tf.Module):
    """(B, N, 2, 8) times a matrix."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(WEIGHTS)

    def signatures(self):
        spec = tf.TensorSpec((None, None, 2, 8), tf.float32, "x")

        def one(product):
            return tf.function(lambda x: {"y": product(x, tf.convert_to_tensor(self.w))})

        return {
            name: one(product).get_concrete_function(spec)
            for name, product in {**UNSAFE, **SAFE}.items()
        }


ASK = """
import sys
import numpy as np
import tensorflow as tf

loaded = tf.saved_model.load(sys.argv[1])
x = np.random.default_rng(6).normal(size=(64, 1, 2, 8)).astype(np.float32)
for name in sys.argv[2:]:
    for _ in range(20):
        y = loaded.signatures[name](x=tf.constant(x))["y"].numpy()
        np.testing.assert_allclose(y, x @ loaded.w.numpy(), rtol=1e-4, atol=1e-5)
"""


@pytest.mark.slow
def test_products_that_overrun_memory_are_found_and_no_others(tmp_path):
    module = Products()
    tf.saved_model.save(module, str(tmp_path), signatures=module.signatures())
    faults = portability_faults(tmp_path)
    assert {fault.signature for fault in faults} == UNSAFE.keys()
    for fault in faults:
        assert f"node {fault.node!r} (BatchMatMulV2)" in str(fault)
        assert "reshape the tensor to rank 2" in fault.reason
    answered = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path), *SAFE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answered.returncode == 0, answered.stderr[-2000:]
