"""`gru-serve playground`: serve the models on this machine with a page on which to try them."""

import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from google.protobuf import text_format

from gru_serving.commands import serve
from gru_serving.commands.terminal import command_parser, safe_text
from gru_serving.errors import InvalidArgument, ServingError
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from gru_serving.server.playground import PATH
from gru_serving.storage.version_scan import is_version

_EXAMPLES = """examples:
  gru-serve playground models/
  gru-serve playground models/sentiment --no-browser
  gru-serve playground demo_output/models --rest_api_port 8600

The server listens on loopback only. Further flags of `gru-serve serve` can be given as
--name=value. Ctrl-C ends the server.
"""
REST_PORT, GRPC_PORT = 8501, 8500
VERSIONS = 2
_HOST = "127.0.0.1"
_METRICS = "prometheus_config { enable: true }\n"


def main(argv: Sequence[str]) -> int:
    """Serve until Ctrl-C; returns the exit status, 2 where there is no model."""
    parser = command_parser(
        "playground",
        "Serve the exported models of a folder on this machine, and open a page in "
        "the browser on which to try them.",
        _EXAMPLES,
    )
    parser.add_argument(
        "models",
        type=Path,
        metavar="MODELS",
        help="folder of models, base path of one model, or one version of it",
    )
    parser.add_argument(
        "--rest_api_port",
        type=int,
        help=f"port of the page (default: {REST_PORT}, or a free one where that is taken)",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    arguments, further = parser.parse_known_args(argv)
    try:
        models = find_models(arguments.models)
    except ServingError as error:
        print(f"gru-serve playground: {safe_text(error)}", file=sys.stderr)
        return 2
    rest_port = arguments.rest_api_port or _free_port(REST_PORT)
    with tempfile.TemporaryDirectory(prefix="gru-playground-") as folder:
        flags = _flags(models, Path(folder))
        flags += [f"--rest_api_port={rest_port}", f"--port={_free_port(GRPC_PORT)}", *further]
        # The certificate of a TLS server would have to be checked against its own name.
        scheme = "https" if any("rest_ssl_config_file" in flag for flag in further) else "http"
        address = f"{scheme}://localhost:{rest_port}{PATH}/"
        opening = threading.Thread(
            target=_announce, args=(rest_port, address, not arguments.no_browser), daemon=True
        )
        opening.start()
        return serve.main(flags)


def find_models(folder: Path) -> dict[str, Path]:
    """Find the models below a folder: base paths by model name.

    Args:
        folder: A version, a base path, or a folder of base paths.

    Raises:
        InvalidArgument: The folder holds no version.
    """
    if is_version(folder):
        folder = folder.resolve().parent
    if _is_base_path(folder):
        return {folder.resolve().name: folder.resolve()}
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    models = {path.name: path.resolve() for path in found if _is_base_path(path)}
    if not models:
        what = "holds no exported model" if folder.is_dir() else "is not a folder"
        raise InvalidArgument(
            f"MODELS: expected a folder with models of `gru-serve export`; {folder} {what}"
        )
    return models


def _is_base_path(folder: Path) -> bool:
    return folder.is_dir() and any(
        path.name.isdigit() and is_version(path) for path in folder.iterdir()
    )


def _flags(models: dict[str, Path], folder: Path) -> list[str]:
    config = ModelServerConfig()
    for name, path in models.items():
        model = config.model_config_list.config.add(
            name=name, base_path=str(path), model_platform="tensorflow"
        )
        model.model_version_policy.latest.num_versions = VERSIONS
    (folder / "models.config").write_text(text_format.MessageToString(config), "utf-8")
    (folder / "monitoring.config").write_text(_METRICS, "utf-8")
    return [
        f"--bind_address={_HOST}",
        f"--model_config_file={folder / 'models.config'}",
        f"--monitoring_config_file={folder / 'monitoring.config'}",
        "--enable_playground",
        "--isolate_models",
    ]


def _free_port(wanted: int) -> int:
    """Return the port, or another one if it is in use."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return wanted


def _announce(port: int, address: str, browser: bool) -> None:
    """Print the page's address and open it once the server listens."""
    while True:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            break
    print(f"\nPlayground: {address}   Ctrl-C ends it.\n", flush=True)
    if browser:
        webbrowser.open(address)
