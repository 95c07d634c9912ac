"""`gru-serve prune`: keep the last versions of a model and remove the others."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gru_serving.commands.terminal import command_parser, run_command
from gru_serving.config.files import read_model_config
from gru_serving.storage.publishing import PublishError, remove_old

_EXAMPLES = """examples:
  gru-serve prune models/tickets --keep 3 --dry-run
  gru-serve prune models/tickets --keep 3 --config models.config

Versions that a label points to, or that a version policy names, are needed by the server: with
--config they stay, however old. A server that still has a removed version in memory unloads it as
its version policy says.

exit status: 0 done; 2 wrong arguments or files
"""


def main(argv: Sequence[str]) -> int:
    """Remove old versions; returns the exit status, as described in the help."""
    parser = command_parser(
        "prune",
        "Remove all versions of a model but the highest.",
        _EXAMPLES,
    )
    parser.add_argument("base", type=Path, metavar="DIRECTORY", help="base path of the model")
    parser.add_argument(
        "--keep", type=int, required=True, metavar="N", help="number of highest versions to keep"
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="model config file of the server: versions that it labels or lists stay",
    )
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")
    return run_command(parser, argv, _prune, errors=(PublishError,))


def _prune(arguments: argparse.Namespace) -> int:
    needed = _needed(arguments.config, arguments.base) if arguments.config else set()
    removed = remove_old(arguments.base, arguments.keep, needed, arguments.dry_run)
    for version in removed:
        print(f"{'would remove' if arguments.dry_run else 'removed'} {version}")
    if not removed:
        print("nothing to remove")
    return 0


def _needed(config: Path, base: Path) -> set[int]:
    """Return the versions of this base path that a configuration names."""
    models = read_model_config(str(config), may_log=True) or []
    models = [model for model in models if model.base_path.resolve() == base.resolve()]
    if not models:
        raise ValueError(f"--config {config}: expected a model with the base path {base.resolve()}")
    return {n for model in models for n in (*model.labels.values(), *model.policy.versions)}
