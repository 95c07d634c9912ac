"""A Docker Engine for the tests: the running one, or one started and stopped for them."""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

PACKAGES = {
    "dockerd": "docker.io",
    "debootstrap": "debootstrap",
    "docker-compose": "docker-compose",
    "iptables-save": "iptables",
    "openssl": "openssl",
    "curl": "curl",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "keras_gru"
START_SECONDS = 60


class EngineError(Exception):
    """There is no Docker Engine and none can be started; the message says what to do."""


class Docker:
    """Runs Docker's client and Compose.

    Attributes:
        command: The client.
        compose_command: Compose, as plugin or as program.
    """

    def __init__(self, host=None):
        self.environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
        if host is not None:
            self.environment["DOCKER_HOST"] = host
        self.command = self._client()
        self.compose_command = self._compose()

    def __call__(self, *arguments, **options):
        """Standard output of a command of the client; raises CalledProcessError if it fails."""
        return self._run([self.command, *arguments], **options)

    def compose(self, *arguments, environment, **options):
        """The same for Compose."""
        return self._run([*self.compose_command, *arguments], environment, **options)

    def answers(self):
        """Whether the engine answers."""
        return self._succeeds(self.command, "info")

    def _run(self, command, environment=None, **options):
        done = subprocess.run(
            command,
            env={**self.environment, **(environment or {})},
            capture_output=True,
            check=False,
            **options,
        )
        if done.returncode:
            tail = (done.stdout + done.stderr).decode(errors="replace")[-4000:]
            raise AssertionError(f"status {done.returncode} of {' '.join(command)}\n{tail}")
        return done.stdout.decode()

    def _client(self):
        # From version 23 on, the client builds with a plugin, which may not be installed.
        for command in filter(None, (shutil.which("docker"), "/usr/bin/docker")):
            if self._succeeds(command, "buildx", "version"):
                return command
            if self._succeeds(command, "--version"):
                said = self._run([command, "--version"])  # Docker version 20.10.24+dfsg1, build ...
                if int(said.split()[2].split(".")[0]) < 23:
                    return command
        raise EngineError("expected a Docker client that builds with BuildKit; found none")

    def _compose(self):
        if self._succeeds(self.command, "compose", "version"):
            return [self.command, "compose"]
        if program := shutil.which("docker-compose"):
            return [program]
        raise EngineError("expected Docker Compose; found neither the plugin nor docker-compose")

    def _succeeds(self, *command):
        try:
            done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        except OSError:
            return False
        return done.returncode == 0


@contextmanager
def docker_engine(build):
    """An engine until the block ends; if it is ours, its log goes to the folder `build`.

    Raises:
        EngineError: There is none, and this user or system cannot start one.
    """
    # The daemon and iptables are in folders that not every PATH has.
    os.environ["PATH"] = f"{os.environ['PATH']}:{SYSTEM_PATH}"
    try:
        docker = Docker()
    except EngineError:
        install()
        docker = Docker()
    if docker.answers():
        yield docker
        return
    install()
    with own_engine(build / "dockerd.log") as docker:
        yield docker


def install():
    """Install what is missing; only on Debian and as root."""
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if not missing and os.geteuid() == 0:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise EngineError(
            "expected a Docker Engine that answers `docker info`, or to be root on Debian, where "
            f"one can be started (missing packages: {', '.join(missing) or 'none'})"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["--yes", "--quiet", "--no-install-recommends"]
    for command in (["update", "--quiet"], ["install", *options, *missing]):
        subprocess.run(["apt-get", *command], env=quiet, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def own_engine(log):
    """A daemon with its own socket and data."""
    CACHE.mkdir(parents=True, exist_ok=True)
    bridged = Path("/sys/class/net/docker0").exists()
    rules = subprocess.run(["iptables-save"], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="dockerd-") as state, log.open("wb") as output:
        socket = f"unix://{state}/docker.sock"
        daemon = subprocess.Popen(
            [
                # Tests that are killed leave no daemon, which would keep the next from its data.
                *("setpriv", "--pdeathsig", "TERM"),
                "dockerd",
                f"--host={socket}",
                f"--data-root={CACHE / 'docker'}",
                f"--exec-root={state}/exec",
                f"--pidfile={state}/docker.pid",
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            docker = Docker(socket)
            deadline = time.monotonic() + START_SECONDS
            while not docker.answers():
                if daemon.poll() is not None or time.monotonic() > deadline:
                    tail = log.read_text(errors="replace")[-2000:]
                    raise EngineError(f"dockerd does not start here; the end of {log}:\n{tail}")
                time.sleep(0.2)
            yield docker
        finally:
            daemon.terminate()
            daemon.wait(60)
            subprocess.run(["iptables-restore"], input=rules, check=True)
            if not bridged:
                subprocess.run(
                    ["ip", "link", "delete", "docker0"], capture_output=True, check=False
                )
