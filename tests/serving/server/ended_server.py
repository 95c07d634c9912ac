"""A server that ends by itself."""

import subprocess

from tests.serving.servers import start


def ended(*flags):
    """Run to the end: (status, stdout, stderr)."""
    process = start(*flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def failure(*flags):
    status, out, _ = ended(*flags)
    assert status == 255
    return out
