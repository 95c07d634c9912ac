"""The images say what they are made of, and under which licences."""

import functools
import importlib.metadata
import json
import subprocess
import tarfile

import pytest

from .images import REPOSITORY

pytestmark = pytest.mark.docker

PYTHON = ("engine", "engine-light", "training")
OWN = (*PYTHON, "gateway")
LISTED = """
import importlib.metadata as metadata, json, re
name = lambda one: re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
print(json.dumps({name(one): one.version for one in metadata.distributions()}))
"""


@pytest.fixture(scope="module")
def sbom(docker, images, tmp_path_factory):
    """What an image's list names: versions by the beginning of their package URL."""
    folder = tmp_path_factory.mktemp("sbom")
    elsewhere = folder / "of_this_machine" / "stranger-1.0.dist-info"
    elsewhere.mkdir(parents=True)
    (elsewhere / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")

    @functools.cache
    def components(target):
        command = [
            *(REPOSITORY / "build" / "sbom-tools" / "bin" / "python", "docker/sbom.py"),
            *("--docker", docker.command, "--to", folder, images[target]),
        ]
        environment = {**docker.environment, "PYTHONPATH": str(folder / "of_this_machine")}
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        content = json.loads((folder / f"{target}.cdx.json").read_text())
        assert content["bomFormat"] == "CycloneDX"
        about = content["metadata"]["component"]
        digest = docker("image", "inspect", "--format={{.Id}}", images[target]).strip()
        assert (about["name"], about["version"]) == (images[target], digest)
        return {
            one["purl"].partition("@")[0]: one["version"]
            for one in content["components"]
            if not one["purl"].endswith("arch=source")
        }

    return components


@pytest.mark.parametrize("target", PYTHON)
def test_it_names_the_python_packages_that_the_image_can_import(docker, images, sbom, target):
    run = ("run", "--rm", "--network=none", "--entrypoint=/opt/venv/bin/python", images[target])
    installed = json.loads(docker(*run, "-c", LISTED))
    assert installed["keras-gru"] == importlib.metadata.version("keras-gru")
    named = {
        purl.removeprefix("pkg:pypi/"): version
        for purl, version in sbom(target).items()
        if purl.startswith("pkg:pypi/")
    }
    assert named == installed


@pytest.mark.parametrize("target", OWN)
def test_it_names_the_packages_of_debian(docker, images, sbom, target):
    """With the versions that the base image has, as its own dpkg says."""
    query = ("dpkg-query", "--show", "--showformat=${Package} ${Version}\n")
    lines = docker("run", "--rm", "--network=none", images["base"], *query).splitlines()
    base = dict(line.split() for line in lines)
    named = {
        purl.removeprefix("pkg:deb/debian/"): version
        for purl, version in sbom(target).items()
        if purl.startswith("pkg:deb/")
    }
    expected = {
        "libc6",
        "ca-certificates",
        *(("libpython3.11-stdlib",) if target in PYTHON else ()),
    }
    assert expected <= set(named)
    assert {"nginx"} & set(named) if target == "gateway" else "nginx" not in named
    # No package of which nothing was taken, such as a shell or a package manager.
    assert not {"dpkg", "apt", "dash", "bash", "coreutils", "util-linux"} & set(named)
    assert {name: base[name] for name in named if name in base} == {
        name: version for name, version in named.items() if name in base
    }


@pytest.mark.parametrize("target", [*OWN, "prometheus"])
def test_licences_are_in_the_image(docker, images, tmp_path, target):
    container = docker("create", images[target]).strip()
    try:
        docker("export", f"--output={tmp_path / 'files.tar'}", container)
    finally:
        docker("rm", container)
    with tarfile.open(tmp_path / "files.tar") as archive:
        names = {one.name for one in archive}
        if target == "prometheus" and "var/lib/dpkg/status" not in names:
            pytest.skip("the official image has no packages of Debian")
        status = archive.extractfile("var/lib/dpkg/status").read().decode()
    packages = {line.split()[1] for line in status.splitlines() if line.startswith("Package: ")}
    without = {name for name in packages if f"usr/share/doc/{name}/copyright" not in names}
    assert without == set()
    assert "usr/share/common-licenses/GPL-2" in names
    if target in PYTHON:
        own = "opt/project/keras_gru-" + importlib.metadata.version("keras-gru") + ".dist-info"
        assert {f"{own}/licenses/LICENSE", f"{own}/licenses/NOTICE"} <= names


@pytest.mark.parametrize("target", [*OWN, "serving", "prometheus"])
def test_labels(docker, images, target):
    (found,) = json.loads(docker("image", "inspect", images[target]))
    labels = found["Config"]["Labels"]
    begun = "org.opencontainers.image."
    assert labels[f"{begun}title"] == f"keras-gru {target}"
    assert labels[f"{begun}version"] == importlib.metadata.version("keras-gru")
    assert labels[f"{begun}description"]
