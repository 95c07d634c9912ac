"""docs/reference/server_flags.md: every flag, its effect, what differs, and the test of it.

`python docs/sphinx/flag_page.py docs/reference/server_flags.md
tests/serving/config/shown_flags.toml` writes the page again.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from gru_serving.config.flags import FLAGS, Honour

HEAD = """# The server's flags

`gru-serve serve` has the flags of `tensorflow_model_server` and follows its rules: `--name=value`,
booleans also without a value, the last of repeated flags wins, and unknown arguments are reported
but do not stop the server. `gru-serve serve --help` lists the flags. This page describes what each
flag does here, how that differs from TensorFlow Serving, and which test in `tests/serving` shows
it.
"""
ADDITIONS = """
## Additions

`tensorflow_model_server` does not know these flags. It reports them and starts anyway, so you can
use one command line for both.
"""

COLUMNS = "| flag | default | effect | difference | test |\n|---|---|---|---|---|"

NOTHING = "Accepted without effect; the log says so. "

# Where the effect differs from TensorFlow Serving's.
DIFFERENCES = {
    "port": "listens on `--bind_address`, not on all interfaces",
    "rest_api_port": "listens on `--bind_address`, not on all interfaces",
    "model_base_path": "local paths and `file://` only",
    "file_system_poll_wait_seconds": "0 with a model that has no version is an error; "
    "TensorFlow Serving would wait forever",
    "enable_batching": "requests of different shapes or types go to separate batches; in "
    "TensorFlow Serving they all fail. A batch that fails is run again request by "
    "request, so that only the bad request fails. A deadline ends the wait in the queue",
    "batching_parameters_file": "invalid parameters end the start at once, not after the "
    "retries of a load. These are also invalid: a negative `max_batch_size` or "
    "`max_enqueued_batches`, which means no limit for TensorFlow Serving; "
    "`allowed_batch_sizes` that are not positive or do not ascend; more than 1024 "
    "`num_batch_threads`",
    "grpc_channel_arguments": "gRPC's own defaults cancel calls when more than a thousand wait to "
    "be read. Here the defaults are `grpc.max_concurrent_streams=1000`, with which further calls "
    "of a connection wait in the client, no limit on those that wait to be read, and "
    "`grpc.http.overload_protection=0`; arguments given here replace these",
    "max_num_load_retries": "a version that failed is also loaded again when its files have "
    "changed; a version whose files do not match its digests, or that crashed its trial process, "
    "is not tried again before",
    "enable_model_warmup": "warmup requests do not wait for a batch to fill",
    "grpc_max_threads": "counts threads that run models; requests waiting for a batch occupy none",
    "rest_api_num_threads": "counts threads that run models; requests waiting for a batch occupy "
    "none",
    "enable_profiler": "off by default; TensorFlow Serving's default is `true`",
    "prefer_tflite_model": "the signatures of the file's metadata are served, or else its native "
    "ones; it runs on LiteRT if `ai-edge-litert` is installed, else on TensorFlow's interpreter",
    "num_tflite_pools": "multiplied by `--num_tflite_interpreters_per_pool`: requests that one "
    "model processes at once",
    "num_tflite_interpreters_per_pool": "see `--num_tflite_pools`",
    "flush_filesystem_caches": NOTHING + "The page cache is managed by the operating system",
    "remove_unused_fields_from_bundle_metagraph": NOTHING + "Only signatures are kept anyway",
    "mixed_precision": NOTHING + "The rewriter is not in TensorFlow's Python packages",
    "platform_config_file": NOTHING + "There is only one platform",
    "thread_pool_factory_config_file": NOTHING + "There are no factories to choose from",
    "use_alts_credentials": NOTHING + "ALTS works only inside Google's cloud; use "
    "`--ssl_config_file`",
    "skip_initialize_tpu": NOTHING + "No TPU is ever initialised",
    "xla_cpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "xla_gpu_compilation_enabled": NOTHING + "Compile at export: `jit_compile=True`",
    "version": "the version is that of keras-gru",
}


def page(shown: Mapping[str, str]) -> str:
    """The page as Markdown.

    Args:
        shown: Test that shows the effect of a flag, `module::function`, by its name.
    """
    ours = [flag for flag in FLAGS if flag.metadata["honour"] is Honour.OURS]
    theirs = [flag for flag in FLAGS if flag not in ours]
    rows, additions = ([_row(flag, shown) for flag in flags] for flags in (theirs, ours))
    return "\n".join([HEAD, COLUMNS, *rows, ADDITIONS, COLUMNS, *additions]) + "\n"


def _row(flag: Field[Any], shown: Mapping[str, str]) -> str:
    default = flag.metadata["shown"] or flag.default
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
