"""`gru-train COMMAND ...`, also `python -m gru_training COMMAND ...`.

Exit status: 0 the run is complete; 2 a setting or the data cannot be used, one line says why;
130 interrupted (by Ctrl-C the run is kept if training had begun; by SIGTERM its checkpoint, from
which `resume` continues).
"""

import os
import sys
from collections.abc import Sequence

_READER_GONE = 128 + 13  # the status that shells report for SIGPIPE, which Windows lacks


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: The arguments after the program's name; those of the process by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        from gru_training.command_line import run_command

        try:
            return run_command(arguments)
        finally:
            if sys.stdout is not None:  # it may be closed, as `>&-` does
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; otherwise Python prints an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_GONE
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if "--debug" in arguments or missing in ("", "keras_gru", "gru_training"):
            raise
        print(
            f"gru-train: error: training needs {missing}, which is not installed; install it with "
            "pip install 'keras-gru[train]'",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
