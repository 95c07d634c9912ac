"""The REST client: NumPy and httpx, no TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from serving.client import Client, Metadata, Target, VersionState
from serving.errors import DeadlineExceeded, InvalidArgument, Unknown
from serving.rest_codec import decode_error, decode_outputs, encode_request
from serving.signature import Signature


class RestClient(Client):
    """A client of the REST API.

    Args:
        url: `http://host:port` or `https://host:port`.
        timeout: Seconds allowed for a call where the call does not say.
        retries: Further tries while the server is unavailable.
        ca_file: Certificates (PEM) to trust, for https.
    """

    def __init__(
        self, url: str, timeout: float = 30.0, retries: int = 3, ca_file: str | None = None
    ) -> None:
        super().__init__(url.rstrip("/"), timeout, retries)
        verify: Any = True
        if ca_file is not None:
            import ssl

            verify = ssl.create_default_context(cafile=ca_file)
        # httpx takes longer to import than all the rest here, and who only imports need not wait.
        import httpx

        self._httpx = httpx
        self._http = httpx.Client(verify=verify, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _predict(
        self,
        target: Target,
        signature_name: str,
        signature: Signature,
        inputs: Mapping[str, np.ndarray],
        output_filter: list[str],
        timeout: float,
    ) -> dict[str, np.ndarray]:
        if not inputs.keys() >= signature.inputs.keys():
            raise InvalidArgument(
                f"inputs: REST cannot use default values; expected all of "
                f"{sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        body = encode_request(inputs, signature, signature_name)
        answer = self._send("POST", f"{_path(target)}:predict", timeout, body)
        outputs = decode_outputs(answer, signature)
        # The API itself has no output filter.
        return {name: outputs[name] for name in output_filter} if output_filter else outputs

    def _metadata(self, target: Target, timeout: float) -> Metadata:
        value = _json(self._send("GET", f"{_path(target)}/metadata", timeout))
        try:
            signatures = value["metadata"]["signature_def"]["signature_def"]
            version = int(value["model_spec"]["version"])
            parsed = {name: Signature.from_json(entry) for name, entry in signatures.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise Unknown(f"{self.url} answers metadata of an unknown form: {error!r}") from None
        return Metadata(target.model, version, parsed)

    def _status(self, target: Target, timeout: float) -> list[VersionState]:
        value = _json(self._send("GET", _path(target), timeout))
        try:
            return [
                VersionState(
                    int(entry["version"]),
                    entry["state"],
                    entry["status"]["error_code"],
                    entry["status"]["error_message"],
                )
                for entry in value["model_version_status"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise Unknown(f"{self.url} answers a status of an unknown form: {error!r}") from None

    def _send(self, method: str, path: str, timeout: float, body: bytes | None = None) -> bytes:
        try:
            response = self._http.request(
                method,
                f"{self.url}{path}",
                content=body,
                timeout=timeout,
                headers={"Content-Type": "application/json"} if body is not None else None,
            )
        except self._httpx.TimeoutException:
            raise DeadlineExceeded(f"{self.url} did not answer within {timeout:.1f} s") from None
        except self._httpx.TransportError as error:
            raise self._unreachable(str(error) or type(error).__name__, self._flag()) from None
        except self._httpx.InvalidURL as error:
            raise InvalidArgument(f"url: {error}; got {self.url!r}") from None
        if response.status_code != 200:
            raise decode_error(response.status_code, response.content)
        return response.content

    def _flag(self) -> str:
        return f"rest_api_port={self._httpx.URL(self.url).port or 8501}"


def _path(target: Target) -> str:
    path = f"/v1/models/{quote(target.model, safe='')}"
    if target.version is not None:
        return f"{path}/versions/{target.version}"
    return f"{path}/labels/{quote(target.label, safe='')}" if target.label else path


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise Unknown(f"the server's answer is no JSON: {body[:200]!r}") from None
