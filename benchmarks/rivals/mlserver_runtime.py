"""MLServer around the SavedModel, with its adaptive batching."""

import os

import tensorflow as tf
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class SavedModelRuntime(MLModel):
    """Rows of tokens in, scores out."""

    async def load(self) -> bool:
        """Load the SavedModel."""
        self._loaded = tf.saved_model.load(os.environ["SAVED_MODEL"])
        self._serve = self._loaded.signatures["serving_default"]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """One batch."""
        tokens = NumpyCodec.decode_input(payload.inputs[0])
        scores = self._serve(tokens=tf.constant(tokens, tf.int32))["scores"].numpy()
        output = NumpyCodec.encode_output("scores", scores)
        return InferenceResponse(model_name=self.name, outputs=[output])
