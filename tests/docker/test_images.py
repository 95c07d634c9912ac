"""Each image alone: its contents, its start and its end."""

import json
import shutil
import subprocess
import tarfile
import time

import httpx
import pytest

from .images import EMBEDDED, REPOSITORY, build_image

pytestmark = pytest.mark.docker

OWN = ("engine", "engine-light", "training", "gateway", *(("serving",) if EMBEDDED else ()))
SHELLS = {"sh", "bash", "dash", "busybox", "zsh"}
TOOLS = {"apt", "apt-get", "dpkg", "pip", "pip3", "gcc", "curl", "wget", "perl", "ld"}
HARDENED = ("--init", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL")
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


@pytest.fixture(scope="module")
def files(docker, images, tmp_path_factory):
    """The files of an image as members of tarfile, and its certificates."""
    read = {}

    def content(target):
        if target not in read:
            path = tmp_path_factory.mktemp("image") / "files.tar"
            container = docker("create", images[target]).strip()
            try:
                docker("export", f"--output={path}", container)
            finally:
                docker("rm", container)
            with tarfile.open(path) as archive:
                members = archive.getmembers()
                bundle = [member for member in members if member.name == CERTIFICATES]
                read[target] = members, b"".join(archive.extractfile(m).read() for m in bundle)
            path.unlink()
        return read[target]

    return content


@pytest.mark.parametrize("target", OWN)
def test_nothing_but_the_program(files, target):
    members, _ = files(target)
    programs = {m.name.rpartition("/")[2] for m in members if m.isfile() and m.mode & 0o111}
    assert not programs & (SHELLS | TOOLS)
    assert [m.name for m in members if m.mode & 0o6000] == []
    # All that the program's user could change: only the temporary directory.
    loose = {m.name for m in members if not m.issym() and (m.mode & 0o2 or m.uid != 0)}
    assert loose <= {"tmp"}


@pytest.mark.parametrize("target", OWN)
def test_no_secret_of_the_build_is_left(docker, images, files, target):
    members, bundle = files(target)
    secret = (".key", ".netrc", "id_rsa", "pip.conf")
    assert [m.name for m in members if m.name.endswith(secret)] == []
    assert [m.name for m in members if m.name.startswith("run/secrets") and m.size] == []
    if bundle:  # the base image's, not the builder's
        base = docker("run", "--rm", "--network=none", images["base"], "cat", f"/{CERTIFICATES}")
        assert bundle.decode() == base
    (found,) = json.loads(docker("image", "inspect", images[target]))
    assert not [value for value in found["Config"]["Env"] or () if value.startswith("PIP_")]
    assert "index-url" not in docker("history", "--no-trunc", images[target])


@pytest.mark.parametrize(
    "target", ["engine", "engine-light", "serving", "training", "gateway", "prometheus"]
)
def test_users_and_health_checks(docker, images, target):
    (found,) = json.loads(docker("image", "inspect", images[target]))
    user = found["Config"]["User"].split(":")[0]
    assert user.isdecimal()
    assert int(user) > 1000
    assert found["Architecture"] in ("amd64", "arm64")
    assert ("Healthcheck" in found["Config"]) == (target != "training")


@pytest.mark.parametrize("target", ["engine", "engine-light"])
def test_official_conventions(docker, images, models, figures, target):
    """MODEL_NAME, the ports and appended flags work as with `docker run tensorflow/serving`."""
    container = docker(
        *("run", "--detach", *HARDENED, "--env=MODEL_NAME=sentiment"),
        *(f"--volume={models / 'served'}:/models:ro", "--publish=127.0.0.1::8501"),
        *(images[target], "--enable_batching", "--rest_api_timeout_in_ms=20000"),
    ).strip()
    try:
        begun = time.monotonic()
        url = f"http://{docker('port', container, '8501/tcp').strip()}"
        until(lambda: httpx.get(f"{url}/readyz", trust_env=False).status_code == 200)
        figures(f"{target} image: ready {time.monotonic() - begun:.1f} s after its start")
        answer = httpx.post(
            f"{url}/v1/models/sentiment:predict", json={"instances": ["fine"]}, trust_env=False
        )
        assert set(answer.json()["predictions"][0]) == {"label", "probability", "scores"}
        # It listens on all interfaces without a token, and says so once.
        assert log_of(docker, container).count("Without --auth_token_file") == 1
        state = ("inspect", "--format={{.State.Health.Status}}", container)
        until(lambda: docker(*state).strip() == "healthy")
        begun = time.monotonic()
        docker("stop", "--time=30", container)
        figures(f"{target} image: stopped {time.monotonic() - begun:.1f} s after SIGTERM")
        assert docker("inspect", "--format={{.State.ExitCode}}", container).strip() == "0"
    finally:
        docker("rm", "--force", container)


def log_of(docker, container):
    command = [docker.command, "logs", container]
    return subprocess.run(
        command,
        env=docker.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout.decode()


def test_models_inside(docker, images, models):
    """An image with its models built in: nothing is mounted."""
    inside = REPOSITORY / "build" / "models" / "docker-test"
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(models / "served", inside)
    try:
        folder = str(inside.relative_to(REPOSITORY))
        name = build_image(docker, "serving-with-models", images["base"], MODELS=folder)
    finally:
        shutil.rmtree(inside)
    container = docker("run", "--detach", *HARDENED, "--network=none", name).strip()
    try:
        state = ("inspect", "--format={{.State.Health.Status}}", container)
        until(lambda: docker(*state).strip() == "healthy")
    finally:
        docker("rm", "--force", container)


def test_official_name(docker, images):
    said = docker(
        *("run", "--rm", "--entrypoint=tensorflow_model_server", images["engine"], "--version")
    )
    assert said.startswith("TensorFlow ModelServer: ")
    assert "TensorFlow Library: 2." in said


def test_the_light_engine_says_which_image_to_take(docker, images, models):
    """A SavedModel without graphs of ONNX needs TensorFlow."""
    folder = models / "without_onnx"
    shutil.rmtree(folder, ignore_errors=True)
    version = folder / "sentiment" / "1"
    shutil.copytree(models / "served" / "sentiment" / "1", version)
    shutil.rmtree(version / "assets.extra")
    command = [docker.command, "run", "--rm", *HARDENED, "--env=MODEL_NAME=sentiment"]
    command += [f"--volume={folder}:/models:ro", images["engine-light"], "--trial_load=never"]
    done = subprocess.run(
        [*command, "--max_num_load_retries=0"],
        env=docker.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 255
    assert "needs TensorFlow, which is not installed here: use the image `engine`" in done.stdout


def test_size_of_the_light_engine(docker, images):
    size = int(docker("image", "inspect", "--format={{.Size}}", images["engine-light"]))
    assert size < 400e6


def test_size_of_the_engine(docker, images):
    """The CPU build, no headers, no symbols: should the size double, this test notices."""
    assert int(docker("image", "inspect", "--format={{.Size}}", images["engine"])) < 1.3e9


def until(done, seconds=120):
    deadline = time.monotonic() + seconds
    while True:
        try:
            if done():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)
