"""A text, and what tests do with an exported classifier."""

import numpy as np
import tensorflow as tf

from gru_serving.engine.predictor import Predictor

TEXT = "To be fair, at first it isn't dull, but then the script is not funny."


def scores_so_far(exports, words):
    """The sequence signature's answer to every prefix of a text."""
    predictor = Predictor(exports.version("one"))
    texts = [" ".join(words[:count]).encode() for count in range(1, len(words) + 1)]
    return [predictor.predict({"text": np.array([text], object)})["scores"][0] for text in texts]


def retouch(version):
    """Change a weight and write the variables again."""
    prefix = str(version / "variables" / "variables")
    reader = tf.train.load_checkpoint(prefix)
    tensors = {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}
    changed = next(
        n for n, v in tensors.items() if isinstance(v, np.ndarray) and v.dtype == np.float32
    )
    tensors[changed] = tensors[changed] + np.float32(0.05)
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[name]) for name in names],
    )
