"""Requests for inferences as REST carries them: a path and JSON."""

from __future__ import annotations

import numpy as np

from gru_serving.codecs.json_example import (
    encode_classifications,
    encode_regressions,
    parse_examples,
)
from gru_serving.codecs.json_inputs import decode_inputs, parse_predict
from gru_serving.codecs.json_predict import encode_outputs
from gru_serving.engine.predictor import Predictor
from gru_serving.errors import InvalidArgument
from gru_serving.inference.examples import Classify, Regress
from gru_serving.inference.predict import Predict
from gru_serving.inference.request import Request, Target
from gru_serving.server.rest.body import Body, PackedBody


class Post(Request):
    """A request of REST's.

    Args:
        target: What the path names.
        body: As it came, or unpacked.
        timeout_ms: Time allowed for the run; 0 for no limit.
    """

    def __init__(self, target: Target, body: Body | PackedBody, timeout_ms: int) -> None:
        self.target = target
        self.size = len(body)
        self._body = body
        self._timeout_ms = timeout_ms

    def timeout_ms(self) -> int:
        """As in the base class."""
        return self._timeout_ms

    def _unpacked(self) -> Body:
        body = self._body
        if isinstance(body, PackedBody):
            body = body.unpack()
            self.size = len(body)
        return body


class PredictPost(Post, Predict):
    """`POST /v1/models/NAME:predict`."""

    def parse(self) -> None:
        """As in the base class."""
        self._parsed = parse_predict(self._unpacked())
        self.signature_name = self._parsed.signature_name

    def decode(self, predictor: Predictor) -> dict[str, np.ndarray]:
        """As in the base class."""
        signature = predictor.signatures.get(self.signature)
        if signature is None:
            raise InvalidArgument(
                f'Serving signature name: "{self.signature}" not found in signature def'
            )
        inputs, self._row = decode_inputs(self._parsed, signature)
        del self._parsed
        predictor.check_inputs(self.signature, inputs.keys())
        return inputs

    def encode(self) -> bytes:
        """As in the base class."""
        return encode_outputs(self.outputs, self._row)


class ClassifyPost(Post, Classify):
    """`POST /v1/models/NAME:classify`."""

    def parse(self) -> None:
        """As in the base class."""
        self.input, self.signature_name = parse_examples(self._unpacked())

    def encode(self) -> bytes:
        """As in the base class."""
        return encode_classifications(self.result.rows())


class RegressPost(Post, Regress):
    """`POST /v1/models/NAME:regress`."""

    def parse(self) -> None:
        """As in the base class."""
        self.input, self.signature_name = parse_examples(self._unpacked())

    def encode(self) -> bytes:
        """As in the base class."""
        return encode_regressions(self.result)
