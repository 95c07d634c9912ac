"""KServe's model server around the SavedModel."""

import os

import tensorflow as tf
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer


class Gru(Model):
    """Rows of tokens in, scores out."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._loaded = tf.saved_model.load(os.environ["SAVED_MODEL"])
        self._serve = self._loaded.signatures["serving_default"]
        self.ready = True

    def predict(self, payload: InferRequest, headers: dict | None = None) -> InferResponse:  # noqa: ARG002
        """One request."""
        tokens = payload.inputs[0].as_numpy()
        scores = self._serve(tokens=tf.constant(tokens, tf.int32))["scores"].numpy()
        output = InferOutput("scores", list(scores.shape), "FP32", scores.ravel().tolist())
        return InferResponse(payload.id or "0", self.name, [output])


if __name__ == "__main__":
    server = ModelServer(
        http_port=int(os.environ["PORT"]), enable_grpc=False, workers=1, access_log_format=None
    )
    server.start([Gru("gru")])
