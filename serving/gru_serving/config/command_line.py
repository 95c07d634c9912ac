"""Command lines by the rules of `tensorflow_model_server`.

Only `--name=value`; booleans also without a value; the last of repeated flags wins; an unknown
argument is reported and the server starts anyway; a bad value ends it with status 255.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import Field
from typing import Any, TextIO

from gru_serving.config.flags import FLAGS, Flags, Honour
from gru_serving.errors import InvalidArgument

_BY_NAME = {one.name: one for one in FLAGS}
_INT64 = {"load_retry_interval_micros", "tensorflow_session_parallelism"}


class HelpRequested(Exception):  # noqa: N818 (no error)
    """`--help` was among the arguments."""


def parse_flags(argv: Sequence[str], stdout: TextIO | None = None) -> Flags:
    """Parse a command line.

    Args:
        argv: Without the program's name.
        stdout: Gets `unknown argument: X` and the usage, as TF Serving prints them.

    Raises:
        HelpRequested: For `--help`.
        InvalidArgument: A flag has a value it cannot have.
    """
    out = sys.stdout if stdout is None else stdout
    given: dict[str, Any] = {}
    unknown = []
    for argument in argv:
        if argument in ("--help", "-h"):
            raise HelpRequested
        match = re.fullmatch(r"--([A-Za-z0-9_]+)(?:=(.*))?", argument, re.DOTALL)
        known = _BY_NAME.get(match.group(1)) if match else None
        if match is None or known is None:
            unknown.append(argument)
            continue
        if match.group(2) is None and not isinstance(known.default, bool):
            unknown.append(argument)
            continue
        given[known.name] = True if match.group(2) is None else _value(known, match.group(2))
    if unknown:
        for argument in unknown:
            print(f"unknown argument: {argument}", file=out)
        if any(argument.lstrip("-").split("=")[0] in _BY_NAME for argument in unknown):
            print("(flags take their value after '=': --port=8500)", file=out)
        print(usage(), file=out)
    return Flags(**given)


def _value(known: Field[Any], text: str) -> bool | int | float | str:
    try:
        if isinstance(known.default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if isinstance(known.default, int):
            number = int(text) if re.fullmatch(r"\s*[-+]?[0-9]+\s*", text) else None
            bits = 63 if known.name in _INT64 else 31
            if number is None or not -(1 << bits) <= number < 1 << bits:
                raise ValueError(text)
            return number
        if isinstance(known.default, float):
            return float(text)
    except (KeyError, ValueError):
        raise InvalidArgument(
            f"Couldn't interpret value {text} for flag {known.name}: expected {_kind(known)}"
        ) from None
    return text


def _kind(known: Field[Any]) -> str:
    if isinstance(known.default, bool):
        return "true or false"
    if isinstance(known.default, int):
        return "a 64-bit integer" if known.name in _INT64 else "a 32-bit integer"
    return "a number" if isinstance(known.default, float) else "text"


def usage() -> str:
    """All flags with defaults and meaning."""
    lines = [
        "usage: gru-serve serve --model_base_path=/models/sentiment --model_name=sentiment",
        "                       --rest_api_port=8501 [--flag=value ...]",
        "",
        "Serves SavedModels with the gRPC and REST APIs of TF Serving, and takes its flags.",
        "The base path holds one directory per version, named by a number (1/, 2/, ...).",
        'Ask it:  gru-serve predict --url http://localhost:8501 --model sentiment "a text"',
        "Status:  curl http://localhost:8501/v1/models/sentiment",
        "",
        "Flags:",
    ]
    for one in FLAGS:
        default = one.default
        shown = str(default).lower() if isinstance(default, bool) else default
        if words := one.metadata["shown"]:
            shown = f"<{words}>"
        lines.append(f"    --{one.name}={shown!r}" if shown == "" else f"    --{one.name}={shown}")
        note = "" if one.metadata["honour"] is Honour.YES else f" ({one.metadata['honour'].value})"
        lines.append(f"        {one.metadata['help']}{note}")
    return "\n".join(lines)
