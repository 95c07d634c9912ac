"""Graphs that TensorFlow would keep until the process ends.

`tf.custom_gradient` registers each gradient that it traces under a name of its own and for good,
and with it all graphs of the function: 50 MB for a layer with a loop, gigabytes for a test run.
"""

import gc
import sys

MODULES_BETWEEN_FREEZES = 100
"""How many more modules are imported before what they hold is set aside again."""

_frozen_at = [0]
"""Numbers of modules at which their objects were set aside."""


def release_graphs():
    """Forget the gradients of all functions traced so far, which can no longer be differentiated.

    What they computed, and functions that are traced from now on, are not affected. Where none was
    traced there is nothing to release.
    """
    if "tensorflow" not in sys.modules:
        return
    from tensorflow.python.framework import ops

    registered = ops.gradient_registry._registry
    traced = [name for name in registered if name.startswith("CustomGradient-")]
    for name in traced:
        del registered[name]
    if traced:
        _collect()


def _collect():
    """Collect garbage, without looking at what imported modules hold.

    That is a million objects of TensorFlow and Keras, and takes a second each time. They are set
    aside after a full collection, as long as modules have been added since the last one.
    """
    gc.collect()
    if len(sys.modules) >= _frozen_at[-1] + MODULES_BETWEEN_FREEZES:
        gc.freeze()
        _frozen_at.append(len(sys.modules))
