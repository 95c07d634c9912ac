"""The REST client's requests and answers; no TensorFlow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from gru_serving.client.conversation import Call
from gru_serving.client.errors import unexpected_answer
from gru_serving.client.metadata import ListedModel, ListedVersion, Metadata, Target, VersionState
from gru_serving.codecs.batch_parts import Arrays
from gru_serving.codecs.example import Values
from gru_serving.codecs.json_example import encode_examples
from gru_serving.codecs.json_predict import (
    decode_outputs,
    encode_request,
    read_json,
)
from gru_serving.codecs.signature import Signature
from gru_serving.errors import InvalidArgument, Unimplemented


@dataclass(frozen=True)
class RestMessage:
    """A request: method, path and JSON body."""

    method: str
    path: str
    body: bytes | None = None


ResultT = TypeVar("ResultT")


class RestWire:
    """Requests as JSON.

    Args:
        url: URL of the server, for messages.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Arrays,
        output_filter: Sequence[str],
    ) -> Call[Arrays]:
        """Encode a Predict request in column format."""
        if not inputs.keys() >= signature.inputs.keys():
            raise InvalidArgument(
                f"inputs: REST cannot use default values; expected all of "
                f"{sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        body = encode_request(inputs, signature, signature_name)

        def read(answer: bytes) -> Arrays:
            outputs = decode_outputs(answer, signature)
            missing = set(output_filter or signature.outputs) - outputs.keys()
            if missing:
                raise unexpected_answer(self._url, f"no output {min(missing)!r} in the answer")
            # The REST API has no output filter.
            return {name: outputs[name] for name in output_filter} if output_filter else outputs

        return RestMessage("POST", f"{_path(target)}:predict", body), read

    def classify(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[list[tuple[str, float]]]]:
        """Encode a Classify request."""

        def read(answer: bytes) -> list[list[tuple[str, float]]]:
            return self._results(
                answer, lambda row: [(str(label), float(score)) for label, score in row]
            )

        return self._examples("classify", target, signature_name, examples), read

    def regress(
        self, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> Call[list[float]]:
        """Encode a Regress request."""

        def read(answer: bytes) -> list[float]:
            return self._results(answer, float)

        return self._examples("regress", target, signature_name, examples), read

    def metadata(self, target: Target) -> Call[Metadata]:
        """Encode a metadata request."""

        def read(answer: bytes) -> Metadata:
            with self._reading("metadata"):
                value = self._json(answer)
                signatures = value["metadata"]["signature_def"]["signature_def"]
                version = int(value["model_spec"]["version"])
                parsed = {name: Signature.from_json(entry) for name, entry in signatures.items()}
                return Metadata(target.model, version, parsed)

        return RestMessage("GET", f"{_path(target)}/metadata"), read

    def status(self, target: Target) -> Call[list[VersionState]]:
        """Encode a status request."""

        def read(answer: bytes) -> list[VersionState]:
            with self._reading("a status"):
                return [
                    VersionState(
                        int(entry["version"]),
                        str(entry["state"]),
                        str(entry["status"]["error_code"]),
                        str(entry["status"]["error_message"]),
                    )
                    for entry in self._json(answer)["model_version_status"]
                ]

        return RestMessage("GET", _path(target)), read

    def models(self) -> Call[list[ListedModel]]:
        """Encode a request for the list of models, which TF Serving does not have."""

        def read(answer: bytes) -> list[ListedModel]:
            with self._reading("a list of models"):
                return [
                    ListedModel(
                        str(model["name"]),
                        tuple(
                            ListedVersion(
                                int(one["version"]),
                                str(one["state"]),
                                tuple(map(str, one["labels"])),
                                str(one.get("runtime", "")),
                                tuple(map(str, one.get("left_to_tensorflow", ()))),
                            )
                            for one in model["versions"]
                        ),
                    )
                    for model in self._json(answer)["models"]
                ]

        return RestMessage("GET", "/models"), read

    def reload(self, config: Any) -> Call[None]:
        """Refuse: REST has no request to replace the configuration."""
        del config
        raise Unimplemented(f"{self._url}: REST cannot reload a configuration; give a gRPC address")

    def _examples(
        self, verb: str, target: Target, signature_name: str, examples: Sequence[Values]
    ) -> RestMessage:
        body = encode_examples(examples, signature_name)
        return RestMessage("POST", f"{_path(target)}:{verb}", body)

    def _results(self, answer: bytes, read: Callable[[Any], ResultT]) -> list[ResultT]:
        value = self._json(answer)
        try:
            if isinstance(value["results"], list):
                return [read(entry) for entry in value["results"]]
        except (KeyError, TypeError, ValueError):
            pass
        raise unexpected_answer(self._url, f"no results in {answer[:200]!r}")

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Say that the answer has an unknown form where reading it fails inside the context."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{what} of an unknown form, {error!r}"
            raise unexpected_answer(self._url, said) from None

    def _json(self, answer: bytes) -> Any:
        try:
            return read_json(answer.decode("utf-8", "replace"))
        except ValueError:
            raise unexpected_answer(self._url, f"no JSON, {answer[:100]!r}") from None


def _path(target: Target) -> str:
    path = f"/v1/models/{quote(target.model, safe='')}"
    if target.version is not None:
        return f"{path}/versions/{target.version}"
    return f"{path}/labels/{quote(target.label, safe='')}" if target.label else path
