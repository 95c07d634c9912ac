"""A loaded version: arrays in, arrays out. Knows neither HTTP nor gRPC."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serving.dtypes import STRING, string_array
from serving.errors import FailedPrecondition, InvalidArgument
from serving.protos.get_model_metadata_pb2 import SignatureDefMap
from serving.session import GraphSession, SessionOptions
from serving.signature import DEFAULT_SIGNATURE, Signature


class Predictor:
    """A SavedModel in memory; its methods may be called from several threads.

    Args:
        directory: Of the SavedModel.
        tags: Of the MetaGraph to load.
        options: Threads of the session.

    Attributes:
        signatures: By name.
        signature_defs: The same as stored, for metadata.

    Raises:
        ServingError: The SavedModel cannot be loaded.
    """

    def __init__(
        self,
        directory: Path,
        tags: Sequence[str] = ("serve",),
        options: SessionOptions | None = None,
    ) -> None:
        self._session = GraphSession(directory, tags, options)
        self.signature_defs: SignatureDefMap = self._session.signatures
        self.signatures: dict[str, Signature] = {
            name: Signature.from_proto(proto)
            for name, proto in sorted(self.signature_defs.signature_def.items())
        }
        self._handles: dict[str, Any] = {}

    def find_signature(self, name: str) -> Signature:
        """The signature of a Predict request.

        Args:
            name: Empty for `serving_default`.

        Raises:
            FailedPrecondition: With TF Serving's text: no such signature.
        """
        name = name or DEFAULT_SIGNATURE
        try:
            return self.signatures[name]
        except KeyError:
            raise FailedPrecondition(f'Serving signature key "{name}" not found.') from None

    def predict(
        self,
        inputs: Mapping[str, np.ndarray],
        signature_name: str = "",
        output_filter: Collection[str] = (),
        timeout_ms: int = 0,
    ) -> dict[str, np.ndarray]:
        """Run one signature.

        Args:
            inputs: Arrays by input name; shapes are not checked, the graph does.
            signature_name: Empty for `serving_default`.
            output_filter: Outputs wanted, in that order; all when empty.
            timeout_ms: Time allowed; 0 for no limit.

        Returns:
            Arrays by output name.

        Raises:
            ServingError: With TF Serving's text.
        """
        signature = self.find_signature(signature_name)
        signature.check_input_names(inputs.keys())
        aliases = signature.select_outputs(output_filter)
        if not aliases:
            raise InvalidArgument("Must specify at least one target to fetch or execute.")
        feeds = {}
        for alias, info in signature.inputs.items():
            array = inputs.get(alias)
            if array is None:
                array = signature.defaults[alias]
            if info.dtype == STRING.number and array.dtype.kind in "SUT":
                array = string_array(array)
            feeds[self._tensor(info.name)] = array
        fetches = [self._tensor(signature.outputs[alias].name) for alias in aliases]
        outputs = self._session.run(feeds, fetches, timeout_ms)
        return dict(zip(aliases, outputs, strict=True))

    def close(self) -> None:
        """Free the model; no request may be under way."""
        self._session.close()

    def _tensor(self, name: str) -> Any:
        # Handles are the same for ever: threads that race here store equal values.
        handle = self._handles.get(name)
        if handle is None:
            handle = self._handles[name] = self._session.tensor(name)
        return handle
