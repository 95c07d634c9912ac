"""Builds the images, from a base image that is pulled or made.

Variables: BASE_IMAGE (default: pulled; made where that fails), SERVING_IMAGE (default: the embedded
engine) and PROMETHEUS_IMAGE (default: Debian's) choose what is tested. With
SERVING_IMAGE=tensorflow/serving:2.20.0 everything runs against the official server.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .engine import CACHE

PREFIX = "keras-gru-test"
REPOSITORY = Path(__file__).resolve().parents[2]
TARGETS = ("gateway", "prometheus", "engine-light", "engine", "serving", "training")
PUBLIC_BASE = "debian:bookworm-slim"
OWN_BASE = f"{PREFIX}/debian:bookworm"
EMBEDDED = os.environ.get("SERVING_IMAGE", "engine") == "engine"
PACKAGES = "python3,python3-venv,ca-certificates"
PIP_OPTIONS = ("index-url", "extra-index-url", "timeout", "trusted-host", "proxy")


def build_images(docker, figures):
    """Build every target; returns names by target, with the base image as `base`."""
    base = os.environ.get("BASE_IMAGE") or base_image(docker, figures)
    names = {"base": base}
    for target in TARGETS:
        begun = time.monotonic()
        names[target] = build_image(docker, target, base)
        seconds = time.monotonic() - begun
        size = int(docker("image", "inspect", "--format={{.Size}}", names[target]))
        figures(f"image {target}: {size / 1e6:.0f} MB, built in {seconds:.0f} s")
    return names


def remove_leftovers(docker):
    """Remove containers and networks that a killed run left behind: their names would be taken."""
    for listed, removed in (
        (("ps", "--all"), ("rm", "--force", "--volumes")),
        (("network", "ls"), ("network", "rm")),
    ):
        if found := docker(*listed, "--quiet", f"--filter=name={PREFIX}").split():
            docker(*removed, *found)


def build_image(docker, target, base, **arguments):
    """Build one target with further build arguments; returns its name."""
    arguments |= {
        "BASE_IMAGE": base,
        "SERVING_IMAGE": os.environ.get("SERVING_IMAGE", "engine"),
        "PROMETHEUS_IMAGE": os.environ.get("PROMETHEUS_IMAGE", "prometheus-debian"),
    }
    name = f"{PREFIX}/{target}"
    with tempfile.TemporaryDirectory() as directory:
        docker(
            *("build", "--network=host", "--file=docker/Dockerfile"),
            *(f"--target={target}", f"--tag={name}"),
            *(f"--build-arg={key}={value}" for key, value in arguments.items()),
            *build_secrets(Path(directory)),
            ".",
            cwd=REPOSITORY,
        )
    return name


def base_image(docker, figures):
    """Debian with Python: pulled, or made with debootstrap."""
    try:
        docker("pull", "--quiet", PUBLIC_BASE, timeout=120)
    except (AssertionError, subprocess.TimeoutExpired):
        begun = time.monotonic()
        if not docker("image", "ls", "--quiet", OWN_BASE):
            archive = CACHE / "debian-bookworm.tar"
            if not archive.exists():
                debootstrap(archive)
            docker("import", str(archive), OWN_BASE)
            figures(f"base image: made in {time.monotonic() - begun:.0f} s")
        return OWN_BASE
    return PUBLIC_BASE


def debootstrap(archive):
    """Make an archive with a minimal Debian."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        root, aside = Path(directory) / "root", Path(directory) / "root.tar"
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm"]
        subprocess.run([*command, str(root)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "--directory", root, "--create", "--file", aside, "."], check=True)
        aside.rename(archive)


def build_secrets(directory):
    """This machine's certificates and pip settings, as options of `docker build`."""
    lines = ["[global]"]
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for option, value in re.findall(r"^(?:global|:env:)\.([a-z-]+)='(.*)'$", listed, re.M):
        # Folders of this machine do not exist while an image is built.
        remote = [part for part in value.split() if not part.startswith(("file:", "/"))]
        if option in PIP_OPTIONS and remote:
            lines.append(f"{option} = {' '.join(remote)}")
    options = []
    bundle = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if bundle and Path(bundle).exists():
        lines.append("cert = /run/secrets/ca")
        options.append(f"--secret=id=ca,src={bundle}")
    settings = directory / "pip.conf"
    settings.write_text("\n".join(lines) + "\n")
    return [*options, f"--secret=id=pip,src={settings}"]
