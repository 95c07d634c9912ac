"""A server with everything that TF Serving lacks, and what tests do with it."""

import json

import httpx
import tensorflow as tf
from tensorflow_serving.apis import (
    prediction_log_pb2,
)

from tests.serving.servers import wait_until

TOKEN, OTHER = "a-token-of-these-tests", "another-token-of-these-tests"
CONFIG = """
model_config_list {{
  config {{
    name: "half/plus:two" base_path: "{root}/half_plus_two" model_platform: "tensorflow"
    version_labels {{ key: "stable" value: 1 }}
  }}
  config {{
    name: "text" base_path: "{root}/text" model_platform: "tensorflow"
    logging_config {{
      sampling_config {{ sampling_rate: 1 }}
      log_collector_config {{ filename_prefix: "sub/words" }}
    }}
  }}
  config {{
    name: "affine" base_path: "{root}/affine" model_platform: "tensorflow"
    logging_config {{ sampling_config {{ sampling_rate: 0 }} }}
  }}
}}
"""


class Equipped:
    """A server with all additions, and the folder for its files."""

    def __init__(self, server, directory, verify):
        self.server = server
        self.access = directory / "access.log"
        self.logs = directory / "predictions"
        self.tokens = directory / "tokens"
        self.verify = verify
        self.url = f"https://localhost:{server.rest_port}"

    def client(self, token=TOKEN):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url, verify=self.verify, headers=headers, trust_env=False, timeout=20
        )

    def lines(self, **wanted):
        found = [json.loads(line) for line in self.access.read_text().splitlines()]
        return [one for one in found if wanted.items() <= one.items()]

    def logged(self, pattern):
        files = [str(path) for path in sorted(self.logs.glob(pattern))]
        return [
            prediction_log_pb2.PredictionLog.FromString(one)
            for one in tf.data.TFRecordDataset(files).as_numpy_iterator()
        ]


def ready(equipped):
    try:
        with equipped.client(None) as client:
            return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def bearer(token=TOKEN):
    return (("authorization", f"Bearer {token}"),)


def soon(found):
    """What is written in the background takes a moment."""
    wait_until(found, seconds=60)
