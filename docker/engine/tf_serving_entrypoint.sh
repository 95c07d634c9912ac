#!/opt/venv/bin/python
"""What the official image's entrypoint of this name does, in an image without a shell."""

import os
import sys

SERVER = "/usr/bin/tensorflow_model_server"
name = os.environ.get("MODEL_NAME", "model")
base_path = os.environ.get("MODEL_BASE_PATH", "/models")
os.execv(
    SERVER,
    [
        SERVER,
        "--port=8500",
        "--rest_api_port=8501",
        f"--model_name={name}",
        f"--model_base_path={base_path}/{name}",
        *sys.argv[1:],
    ],
)
