"""docs/server_flags.md: every flag, its effect, what differs, and the test that shows the effect.

`python -m serving.config.flag_page docs/server_flags.md tests/serving/config/shown_flags.toml`
writes the page anew.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from serving.config.flags import FLAGS, Honour

HEAD = """# The server's flags

`gru-serve serve` takes the flags of `tensorflow_model_server`, by its rules: `--name=value`, booleans
also bare, the last of repeated flags wins, unknown arguments are reported and the server starts all
the same. `gru-serve serve --help` explains them. This page says what each does here, where that
differs from TensorFlow Serving, and which test in `tests/serving` shows it.
"""  # noqa: E501
ADDITIONS = """
## Additions

`tensorflow_model_server` does not know these; it reports them and starts all the same, so that one
command line serves both.
"""

COLUMNS = "| flag | default | effect | difference | test |\n|---|---|---|---|---|"

# Defaults that depend on the machine.
DEFAULTS = {
    "rest_api_num_threads": "4 x CPUs",
    "grpc_max_threads": "4 x CPUs",
    "num_tflite_pools": "CPUs",
}
NOTHING = "Accepted; named in one line of the log. "

# Where the effect is not TensorFlow Serving's to the letter.
DIFFERENCES = {
    "port": "listens on `--bind_address`, not on all interfaces",
    "rest_api_port": "listens on `--bind_address`, not on all interfaces",
    "model_base_path": "local paths and `file://` only",
    "file_system_poll_wait_seconds": "0 with a model that has no version: an error, where "
    "TensorFlow Serving would wait for ever",
    "enable_batching": "requests of different shapes or types go to batches of their own, where "
    "TensorFlow Serving fails them all; a batch that fails is run request by request, so that a "
    "bad one spoils no other; a deadline ends the wait in the queue",
    "batching_parameters_file": "impossible parameters end the start at once, not after the "
    "retries of a load; a negative `max_batch_size` or `max_enqueued_batches` is one, where "
    "TensorFlow Serving takes it for no limit, and so are `allowed_batch_sizes` that are not "
    "positive or do not ascend, and more than 1024 `num_batch_threads`",
    "max_num_load_retries": "a version that failed is also loaded once more when its files have "
    "changed; one whose files are not those exported, or that killed its trial process, is not "
    "tried again before",
    "enable_model_warmup": "warmup requests wait for no batch to fill",
    "grpc_max_threads": "threads that run models; what waits for a batch takes none",
    "rest_api_num_threads": "threads that run models; what waits for a batch takes none",
    "enable_profiler": "off unless asked for; TensorFlow Serving's default is `true`",
    "prefer_tflite_model": "the signatures of the file's metadata are served, or its native ones; "
    "on LiteRT where `ai-edge-litert` is installed, else on TensorFlow's interpreter",
    "num_tflite_pools": "times `--num_tflite_interpreters_per_pool`: requests that one model works "
    "on at once",
    "num_tflite_interpreters_per_pool": "see `--num_tflite_pools`",
    "flush_filesystem_caches": NOTHING + "The page cache belongs to the system",
    "remove_unused_fields_from_bundle_metagraph": NOTHING + "Only signatures are kept anyway",
    "mixed_precision": NOTHING + "The rewriter is not in TensorFlow's Python packages",
    "platform_config_file": NOTHING + "There is one platform",
    "thread_pool_factory_config_file": NOTHING + "There are no factories to choose from",
    "use_alts_credentials": NOTHING + "ALTS works inside Google's cloud only; use "
    "`--ssl_config_file`",
    "skip_initialize_tpu": NOTHING + "No TPU is ever initialised",
    "xla_cpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "xla_gpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "version": "the version is that of keras-gru",
}


def page(shown: Mapping[str, str]) -> str:
    """The page as Markdown.

    Args:
        shown: By the name of a flag, the test that shows its effect: `module::function`.
    """
    ours = [flag for flag in FLAGS if flag.metadata["honour"] is Honour.OURS]
    theirs = [flag for flag in FLAGS if flag not in ours]
    rows, additions = ([_row(flag, shown) for flag in flags] for flags in (theirs, ours))
    return "\n".join([HEAD, COLUMNS, *rows, ADDITIONS, COLUMNS, *additions]) + "\n"


def _row(flag: Field[Any], shown: Mapping[str, str]) -> str:
    default = DEFAULTS.get(flag.name, flag.default)
    default = str(default).lower() if isinstance(default, bool) else str(default)
    test = shown.get(flag.name, "").replace("::", ".py::")
    cells = (
        f"`--{flag.name}`",
        f"`{default}`" if default else "",
        flag.metadata["help"],
        DIFFERENCES.get(flag.name, ""),
        f"`{test}`" if test else "",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the page about the server's flags.")
    parser.add_argument("page", type=Path, help="Markdown file to write")
    parser.add_argument("shown", type=Path, help="TOML file: the test that shows each flag")
    options = parser.parse_args(arguments)
    shown = tomllib.loads(options.shown.read_text("utf-8"))
    options.page.write_text(page(shown), "utf-8")


if __name__ == "__main__":
    main()
