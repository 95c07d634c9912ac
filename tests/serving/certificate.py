"""A certificate for servers under test."""

import shutil
import subprocess

import pytest


def certificate(directory, names="DNS:localhost,IP:127.0.0.1"):
    """Key and self-signed certificate, which acts as its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, cert = directory / "key.pem", directory / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return key, cert
