"""Signed versions: what a server with trusted signers loads, and what it refuses."""

import re
import shutil
import subprocess
import sys

import pytest

from gru_serving.commands.publish import main as publish
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import InvalidArgument, RefusedVersion
from gru_serving.storage.digests import FILE as DIGESTS
from gru_serving.storage.signatures import FILE, Signer, TrustedSigners
from gru_serving.telemetry.metrics import Metrics
from tests.serving.signing_keys import SigningKeys


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return SigningKeys(tmp_path_factory.mktemp("keys"))


def check(version, *signers):
    TrustedSigners(signers).check(version)


def model_signing(*arguments):
    """The project's own tool."""
    return subprocess.run(
        [sys.executable, "-m", "model_signing", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_signature_holds_under_another_number_and_by_their_tool(version, keys):
    Signer(keys.key).sign(version)
    moved = version.rename(version.with_name("7"))
    check(moved, keys.public)
    told = model_signing(
        "verify", "key", moved, "--signature", moved / FILE, "--public_key", keys.public
    )
    assert told.returncode == 0, told.stderr


def test_a_signature_of_their_tool_holds(version, keys):
    (version / FILE).unlink(missing_ok=True)
    told = model_signing(
        "sign", "key", version, "--signature", version / FILE, "--private_key", keys.key
    )
    assert told.returncode == 0, told.stderr
    check(version, keys.public)


@pytest.mark.parametrize("signers", [["authority"], ["public", "authority"]])
def test_a_signature_with_a_certificate_holds(version, keys, signers):
    key, *certificates = keys.signer
    Signer(key, certificates).sign(version)
    check(version, *(getattr(keys, name) for name in signers))


def flip(version):
    path = version / "variables" / "variables.index"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x20
    path.write_bytes(bytes(content))


def link(version):
    (version / "assets" / "more").symlink_to("/etc")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (flip, "Hash mismatch for 'variables/variables.index'"),
        (lambda version: (version / "assets" / "vocabulary.txt").unlink(),
         "Missing files in model '1': assets/vocabulary.txt"),
        (lambda version: (version / "assets.extra" / "tf_serving_warmup_requests").touch(),
         "Extra files found in model '1': assets.extra/tf_serving_warmup_requests"),
        (lambda version: (version / "batching_params.pbtxt").touch(), "batching_params.pbtxt"),
        (lambda version: (version / ".hidden").touch(), ".hidden"),
        (lambda version: (version / DIGESTS).write_text("{}"), "digests.json"),
        (link, "symlink"),
        (lambda version: (version / FILE).write_bytes(b"{}"),
         "expected a signature by OpenSSF Model Signing"),
        (lambda version: (version / FILE).write_text("[" * 200_000),
         "expected a signature by OpenSSF Model Signing"),
        (lambda version: (version / FILE).unlink(),
         "expected the signature that --trusted_signers asks for; got none"),
    ],
    ids=["changed", "removed", "warmup", "batching", "hidden", "digests", "link", "no signature",
         "nested", "missing"],
)  # fmt: skip
def test_what_is_not_as_it_was_signed_is_refused(version, keys, harm, words):
    Signer(keys.key).sign(version)
    check(version, keys.public)
    harm(version)
    with pytest.raises(RefusedVersion, match=re.escape(words)):
        check(version, keys.public)


@pytest.mark.parametrize("trusted", ["public", "authority"])
@pytest.mark.parametrize("signed_by", ["other", "stranger"])
def test_a_signature_of_anybody_else_is_refused(version, keys, signed_by, trusted):
    given = getattr(keys, signed_by)
    key, *certificates = given if isinstance(given, tuple) else (given,)
    Signer(key, certificates).sign(version)
    with pytest.raises(RefusedVersion, match=r"the signature does not hold: by .*: ."):
        check(version, getattr(keys, trusted))


def test_the_kind_of_another_signature_is_named(version, keys, capfd):
    Signer(keys.key).sign(version)
    with pytest.raises(RefusedVersion, match=r"authority.pem: made with a key alone"):
        check(version, keys.authority)
    key, *certificates = keys.signer
    Signer(key, certificates).sign(version)
    with pytest.raises(RefusedVersion, match=r"key.pub: made with a certificate"):
        check(version, keys.public)
    assert capfd.readouterr().out == ""  # where an access log may be


@pytest.mark.parametrize("option", [("--ignore-paths", "variables"), ("--allow_symlinks",)])
def test_a_signature_that_leaves_files_out_is_refused(version, keys, option):
    paths = [str(version / option[1])] if len(option) > 1 else []
    told = model_signing(
        "sign", "key", version, "--signature", version / FILE, "--private_key", keys.key,
        option[0], *paths,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    with pytest.raises(RefusedVersion, match="; got: one that leaves out "):
        check(version, keys.public)


def test_loads_are_counted_by_the_outcome(version, keys):
    metrics = Metrics()
    load = VersionLoader(LoadOptions(signers=[keys.public]), metrics)
    with pytest.raises(RefusedVersion):
        load(version)
    Signer(keys.other).sign(version)
    with pytest.raises(RefusedVersion):
        load(version)
    Signer(keys.key).sign(version)
    load(version).close()
    lines = [line for line in metrics.lines() if line.startswith("gru_serve:signature_check_count")]
    assert lines == [
        f'gru_serve:signature_check_count{{model_path="{version}",outcome="{outcome}"}} 1'
        for outcome in ("invalid", "missing", "valid")
    ]


def test_publish_signs_the_copy_and_leaves_a_signature_as_it_is(models, tmp_path, keys, capsys):
    source = shutil.copytree(models / "text" / "1", tmp_path / "staging" / "1")
    asked = [str(source), "--to", str(tmp_path / "served"), "--unverified"]
    assert publish([*asked, "--sign", str(keys.key)]) == 0
    check(tmp_path / "served" / "1", keys.public)
    Signer(keys.other).sign(source)
    assert publish(asked) == 0
    check(tmp_path / "served" / "2", keys.folder / "other.pub")
    assert publish([*asked, "--certificate", str(keys.authority)]) == 2
    assert "expected --sign KEY beside it" in capsys.readouterr().err


def encrypted(keys, tmp_path):
    path = tmp_path / "encrypted.key"
    subprocess.run(
        ["openssl", "pkey", "-in", keys.key, "-aes256", "-passout", "pass:word", "-out", path],
        check=True,
    )
    return path, ()


@pytest.mark.parametrize(
    "chosen",
    [
        lambda keys, _: (keys.public, ()),
        lambda _, folder: (folder / "none.pem", ()),
        lambda keys, _: (keys.key, keys.signer[1:]),
        encrypted,
    ],
    ids=["public key", "no file", "certificate of another key", "password"],
)
def test_a_key_that_cannot_sign_is_an_error_with_the_way_out(keys, tmp_path, chosen):
    key, certificates = chosen(keys, tmp_path)
    with pytest.raises(InvalidArgument, match=r"--sign .*; got: .*`openssl genpkey") as caught:
        Signer(key, certificates)
    advice = re.search("`(openssl .*)`", str(caught.value))[1].split()
    subprocess.run(advice, cwd=tmp_path, check=True, capture_output=True)
    Signer(tmp_path / "key.pem")


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nx\n", None])
def test_a_file_of_no_signer_is_an_error(tmp_path, content):
    path = tmp_path / "signers.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidArgument, match=r"--trusted_signers: expected a public key"):
        TrustedSigners([path])
