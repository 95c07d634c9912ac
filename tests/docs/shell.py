"""Blocks of a shell, run as they are printed: programs of this project in this process.

What trains is given the fewest epochs and units, the ports are free ones, and a server goes on in a
process of its own until the page ends. All other commands are those of bash.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from gru_serving.__main__ import main as gru_serve
from gru_training.__main__ import main as gru_train
from tests.docs.command_lines import of_shell
from tests.docs.materials import CLASSIFIER, FORECASTER
from tests.ports import free_ports
from tests.serving.servers import Running, answers, start, wait_until

_OPERATORS = re.compile(r"[|<>&;]|\$\(")
_TINY = {"sentiment": CLASSIFIER, "forecasting": FORECASTER}


class Shell:
    """Runs blocks in the working directory.

    Args:
        folder: For the logs of servers.
    """

    def __init__(self, folder):
        self.port, self.rest_port = free_ports(2)
        self._log = folder / "server.log"
        self._server = None

    def with_ports(self, text):
        """The text with this shell's ports in the place of the usual ones."""
        return text.replace("8501", str(self.rest_port)).replace("8500", str(self.port))

    def run(self, text):
        """Run a block, line by line; returns what was printed.

        Raises:
            AssertionError: A command ended with another status than 0; it has the output.
        """
        said = []
        for line in re.sub(r"\\\n", " ", self.with_ports(text)).splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                said.append(self._line(line))
        return "".join(said)

    def serve(self, flags):
        """Start a server with these flags, and wait until it answers; an earlier one ends."""
        self.stop()
        with self._log.open("wb") as out:
            process = start(*flags, stdout=out, stderr=out)
        self._server = Running(process, self.port, self.rest_port, self._log)
        tls = any(flag.startswith("--rest_ssl_config_file") for flag in flags)
        ready = self._listening if tls else lambda: answers(self._server)
        wait_until(ready, self._server)

    def _listening(self):
        return "Exporting HTTP/REST API" in self._log.read_text()

    def stop(self):
        """End the server, if there is one."""
        if self._server is not None:
            self._server.process.terminate()
            self._server.process.wait(60)
            self._server = None

    def _line(self, line):
        words = of_shell(line)
        own = (
            words[0]
            if len(words) == 1 and line.startswith(("gru-", "python -m keras_gru"))
            else None
        )
        if own and own[:2] == ["gru-serve", "serve"]:
            # The server has another working directory than the page.
            flags = [os.path.expandvars(word.replace("$PWD", str(Path.cwd()))) for word in own[2:]]
            self.serve([_with_folder(flag) for flag in flags])
            return ""
        plain = re.sub(r"'[^']*'|\"[^\"]*\"", "", line.partition(" #")[0])
        if own and own[0].startswith("gru-") and not _OPERATORS.search(plain):
            return _in_process(own)
        return _in_bash(line)


def _with_folder(flag):
    """A flag whose file is named from the root."""
    name, equals, value = flag.partition("=")
    if equals and name.endswith(("_file", "_directory", "access_log")) and value != "-":
        return f"{name}={Path(value).absolute()}"
    return flag


def _in_process(words):
    program, *arguments = words
    tiny = _TINY.get(arguments[0], [])
    if program == "gru-train":
        arguments += [] if set(tiny) & set(arguments) else tiny
    arguments = [word.replace("$PWD", str(Path.cwd())) for word in arguments]
    status = (gru_train if program == "gru-train" else gru_serve)(arguments)
    assert status == 0, f"{shlex.join(words)} ended with {status}"
    return ""


def _in_bash(line):
    programs = f'python() {{ "{sys.executable}" "$@"; }}\n' + "\n".join(
        f'{name}() {{ "{sys.executable}" -m {module} "$@"; }}'
        for name, module in (("gru-train", "gru_training"), ("gru-serve", "gru_serving"))
    )
    done = subprocess.run(
        [shutil.which("bash"), "-eo", "pipefail", "-c", f"{programs}\n{line}"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "no_proxy": "*"},
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    if line.lstrip().startswith("curl"):
        assert not re.match(r'\s*\{\s*"error"', done.stdout), done.stdout
    return done.stdout
