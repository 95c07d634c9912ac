"""Graphs that TensorFlow would keep until the process ends.

`tf.custom_gradient` registers each gradient that it traces under a name of its own and for good,
and with it all graphs of the function: 50 MB for a layer with a loop, gigabytes for a test run.
"""

import gc
import sys


def release_graphs():
    """Forget the gradients of all functions traced so far, which can no longer be differentiated.

    What they computed, and functions that are traced from now on, are not affected.
    """
    if "tensorflow" not in sys.modules:
        return
    from tensorflow.python.framework import ops

    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()
