"""Keys and certificates that sign versions in tests, made by openssl."""

import shutil
import subprocess

import pytest


def openssl(*arguments):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class SigningKeys:
    """Two keys and two authorities in a folder; each authority has certified a signer of its own.

    Attributes:
        key: Private key; `public` is its public one.
        other: Private key that nobody trusts.
        authority: Certificate of the authority that servers trust.
        signer: Key and certificates of a signer that an intermediate of that authority certified.
        stranger: Key and certificates of a signer of another authority.
    """

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.key, self.public = self._pair("key")
        self.other, _ = self._pair("other")
        self.authority, key = self._authority("authority")
        between, between_key = self._certified("between", self.authority, key, "CA:TRUE")
        leaf, leaf_key = self._certified("signer", between, between_key, "CA:FALSE")
        self.signer = (leaf_key, leaf, between)
        foreign, key = self._authority("foreign")
        leaf, leaf_key = self._certified("stranger", foreign, key, "CA:FALSE")
        self.stranger = (leaf_key, leaf)

    def _pair(self, name):
        key, public = self.folder / f"{name}.key", self.folder / f"{name}.pub"
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        openssl("pkey", "-in", key, "-pubout", "-out", public)
        return key, public

    def _authority(self, name):
        key, _ = self._pair(name)
        certificate = self.folder / f"{name}.pem"
        openssl("req", "-x509", "-key", key, "-subj", f"/CN={name}", "-days", "2", "-out",
                certificate, "-addext", "keyUsage=keyCertSign")  # fmt: skip
        return certificate, key

    def _certified(self, name, authority, authority_key, constraints):
        key, _ = self._pair(name)
        request, certificate, extensions = (
            self.folder / f"{name}.{ending}" for ending in ("csr", "pem", "ext")
        )
        usage = "keyCertSign" if constraints == "CA:TRUE" else "digitalSignature"
        extensions.write_text(f"basicConstraints=critical,{constraints}\nkeyUsage={usage}\n")
        openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key,
                "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out",
                certificate)  # fmt: skip
        return certificate, key
