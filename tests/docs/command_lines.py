"""The command lines that pages show, and the parsers that they are for."""

import argparse
import contextlib
import importlib.util
import inspect
import io
import re
import shlex
import sys
from unittest import mock

from gru_serving.__main__ import COMMANDS
from gru_serving.config.command_line import HelpRequested, parse_flags
from gru_serving.config.flags import check
from gru_serving.errors import ServingError
from gru_training import command_line
from gru_training.command_line import CheckConfig
from gru_training.command_settings import task_settings
from gru_training.errors import TrainingError
from gru_training.task import TASKS, find_task
from gru_training.tune.command import TuneConfig, search_space

_OPERATORS = {"&&", "||", ";", "|", "&", "(", ")", ";;", "<", ">", ">>"}
_QUOTED_SIGNS = re.compile(r"([\"'])([&|;()<>]+)\1")
_NOT_SIGNS = "\ue000"  # before signs that were quoted, and so are no operators
_INCOMPLETE = re.compile(
    r"arguments? are required|is required|expected one argument|required options|are empty|"
    r"missing (argument|subcommand)|(two or more|at least two) run directories",
    re.I,
)
_EXAMPLES = {"TASK": "sentiment", "SEED": "1", "B,T,D,U": "32,50,100,256"}
_PRESETS = {"sentiment": "mr", "forecasting": "co2"}
_PARAGRAPH = re.compile(r"`([^`]+)`")
_INDENTED = re.compile(r"(?:^ {4}\S.*\n)+", re.M)


def of_shell(text):
    """The commands in lines of a shell, each as a list of words, for programs of this project."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    words = []
    for line in lines:
        line = _QUOTED_SIGNS.sub(lambda quoted: f"{quoted[1]}{_NOT_SIGNS}{quoted[2]}{quoted[1]}",
                                 line.removeprefix("$ "))  # fmt: skip
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = "#"
        try:
            words += [*lexer, ";"]
        except ValueError:  # a quote that goes on: no command line of ours
            words.append(";")
    commands, now = [], []
    for word in words:
        if word in _OPERATORS:
            commands.append(now)
            now = []
        else:
            now.append(word)
    commands = [[word.replace(_NOT_SIGNS, "") for word in command] for command in commands]
    return [found for found in map(_own, commands) if found]


def of_page(text, blocks):
    """All command lines of a page: of blocks and indented code, and then those in sentences.

    A command in a sentence need not be complete; one with `...` is left out.
    """
    found, named = [], []
    for block in blocks:
        if block.language in ("sh", "", "text"):
            found += of_shell(block.text)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    for code in _INDENTED.findall(prose):
        found += of_shell(code)
    for code in _PARAGRAPH.findall(prose):
        for command in of_shell(" ".join(code.split())):
            if not {"...", "…"} & set(command) and command != ["python", "-m", "keras_gru"]:
                named.append(command)
    return found, named


def _own(words):
    while words and re.fullmatch(r"\w+=.*", words[0]):  # variables of this command alone
        words = words[1:]
    if words[:1] == ["time"]:
        words = words[1:]
    if len(words) > 1 and words[0] in ("gru-train", "gru-serve") and words[1] not in ("...", "…"):
        return words
    if len(words) > 2 and re.fullmatch(r"(.*/)?python3?", words[0]) and words[1] == "-m":
        module = words[2].partition(".")[0]
        if module in ("benchmarks", "keras_gru", "gru_serving", "gru_training"):
            return [words[0].rpartition("/")[2], *words[1:]]
    return None


class _Parsed(BaseException):
    """Ends a program once it has read its arguments."""


def complaint(words, complete=True):
    """What the program says against a command line, without running it; None where it takes it.

    Args:
        words: Of the command line.
        complete: Whether arguments that are missing are a fault.
    """
    said = _said(words)
    return None if said and not complete and _INCOMPLETE.search(said) else said


def _said(words):
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        mock.patch.object(sys, "argv", words if words[0] != "python" else words[2:]),
    ):
        try:
            _parse(words)
        except HelpRequested:
            return None
        except SystemExit as stop:
            return None if stop.code in (0, None) else f"{stop.code} {output.getvalue()}"
        except (TrainingError, ServingError, ModuleNotFoundError) as error:
            return repr(error)
    return None


def _parse(words):
    program, *arguments = _with_examples(words)
    if program == "gru-train":
        _parse_training(arguments)
    elif program == "gru-serve":
        _parse_serving(arguments)
    elif arguments[1] == "gru_training":
        _parse_training(arguments[2:])
    elif arguments[1] == "gru_serving":
        _parse_serving(arguments[2:])
    else:
        _parse_module(*arguments[1:])


def _with_examples(words):
    """The words with values in the place of names for them, and two paths for each pattern."""
    examples = {**_EXAMPLES, "PRESET": _PRESETS.get(words[1], "mr")}
    found = []
    for word in words:
        found += [word.replace("*", letter) for letter in "ab"] if "*" in word else [word]
    return [examples.get(word, word) for word in found]


def _parse_training(arguments):
    name, *flags = arguments
    if name == "--help":
        return
    command = command_line.find_command(name, flags)
    if command is None:
        raise SystemExit(f"no command {name}")
    config = command_line.parse(command, flags)
    if isinstance(config, TuneConfig):
        settings = task_settings(
            find_task(config.task), config.training_flags, "gru-train tune TASK"
        )
        search_space(config, settings, [])
    elif isinstance(config, CheckConfig):
        training = ["--data", str(config.path), *config.training_flags]
        for task in map(find_task, TASKS):
            with contextlib.suppress(SystemExit):
                task_settings(task, training, "gru-train check")
                return
        raise SystemExit("no task takes these settings")


def _parse_serving(arguments):
    name, *rest = arguments
    if name == "--help":
        return
    if name not in COMMANDS:
        raise SystemExit(f"no command {name}")
    if name == "serve":
        unknown = io.StringIO()
        check(parse_flags(rest, unknown))
        if unknown.getvalue():
            raise SystemExit(unknown.getvalue())
        return
    module, _, function = COMMANDS[name][0].partition(":")
    _stop_at_parsing(getattr(importlib.import_module(module), function or "main"), rest)


def _parse_module(name, *arguments):
    """A program that is a module; where it reads no arguments, it must be given none."""
    package = importlib.util.find_spec(f"{name}.__main__") if _is_package(name) else None
    module = importlib.import_module(package.name if package else name)
    source = inspect.getsource(module)
    if "parse_args" not in source and "tyro.cli" not in source:
        if arguments and "argv" not in source:
            raise SystemExit(f"{name} takes no arguments")
        return
    main = module.main
    _stop_at_parsing(main, *([list(arguments)] if inspect.signature(main).parameters else []))


def _is_package(name):
    found = importlib.util.find_spec(name)
    if found is None:
        raise SystemExit(f"no module {name}")
    return found.submodule_search_locations is not None


def _stop_at_parsing(main, *arguments):
    depth = 0

    def stopping(parse):
        def parse_and_stop(self, args=None, namespace=None):
            nonlocal depth
            depth += 1
            try:
                result = parse(self, args, namespace)
            finally:
                depth -= 1
            if depth == 0:
                raise _Parsed
            return result

        return parse_and_stop

    parser = argparse.ArgumentParser
    with (
        mock.patch.object(parser, "parse_args", stopping(parser.parse_args)),
        mock.patch.object(parser, "parse_known_args", stopping(parser.parse_known_args)),
        contextlib.suppress(_Parsed),
    ):
        main(*arguments)
        raise SystemExit("the program did not read its arguments")
