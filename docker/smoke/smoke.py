"""Ask a deployment over REST and gRPC, print its answers, and compare them with those at export.

Usage: python3 smoke.py HOST:PORT CERTIFICATE KEY_FILE MODEL_DIRECTORY

Exit status 0: every answer is that of the exported version; 1: one is not, or there was none.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gru_serving.client import Target, connect
from gru_serving.client.results import Sentiment
from gru_serving.engine.golden import VerificationError, read_golden, replay
from gru_serving.errors import ServingError
from gru_serving.release.verify import client_engine
from gru_serving.storage.publishing import find_version

TEXTS = ["Starts badly but ends well.", "Starts well but ends badly."]


def main() -> int:
    """Ask the deployment; returns the exit status."""
    address, certificate, key_file, directory = sys.argv[1:]
    key = Path(key_file).read_text("utf-8").strip()
    version = find_version(Path(directory))
    model = version.parent.name
    for scheme in ("https", "grpcs"):
        try:
            with connect(f"{scheme}://{address}", ca_file=certificate, token=key) as client:
                answers = Sentiment.from_outputs(client.predict(TEXTS, model))
                for text, answer in zip(TEXTS, answers, strict=True):
                    print(f"{scheme}  {text}  {answer.label} {answer.probability:.3f}")
                engine = client_engine(client, Target(model, int(version.name)))
                verdict = replay(read_golden(version), engine)
        except (ServingError, VerificationError) as error:
            print(f"{scheme}  {error}", file=sys.stderr)
            return 1
        print(
            f"{scheme}  {verdict.requests} golden requests of version {version.name} answered as "
            f"at export; largest difference {verdict.largest_difference:.1e}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
