"""Coverage-guided fuzzing with atheris: `make fuzz`, or `python -m tests.fuzz.run --help`.

Each target runs in a process of its own, which begins with the corpus of the repository and with
what earlier runs here have found to reach new code. An input that ends it is a finding: it is kept
in build/fuzz/findings, and belongs into tests/fuzz/corpus/TARGET when the fault is mended.
"""

import argparse
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(folder.name for folder in CORPUS.iterdir())
BUILD = Path("build/fuzz")
PACKAGES = ["gru_serving", "gru_training", "google.protobuf.text_format"]
SECONDS_PER_INPUT = 10
MOST_MIB = 2048
LONGEST = 4096
"""Bytes of an input."""


def main():
    """Run the targets one after the other, and show a row of a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="time in all (default: 60)")
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.targets or NAMES
    for name in names:
        if name not in NAMES:
            parser.error(f"expected targets of {', '.join(NAMES)}, got {name!r}")
    seconds = max(1, arguments.seconds // len(names))
    if arguments.process:
        fuzz(names[0], seconds)
    show("| Target | Inputs | Processor time | Result |\n|---|---:|---:|---|")
    failed = [name for name in names if not is_clean(name, seconds)]
    if failed:
        show(f"\n{', '.join(failed)}: see {BUILD}/findings, and {BUILD}/TARGET.txt")
    sys.exit(bool(failed))


def show(line):
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def is_clean(name, seconds):
    """Run a target in a process of its own, show its row, and tell whether it found nothing."""
    (BUILD / "findings").mkdir(parents=True, exist_ok=True)
    log, before = BUILD / f"{name}.txt", resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as output:
        command = [sys.executable, "-m", "tests.fuzz.run", name, "--process"]
        command += ["--seconds", str(seconds)]
        status = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = log.read_text("utf-8", "replace")
    counts = re.findall(r"^(?:#|Done )(\d+)\s", said, re.M)
    count = int(counts[-1]) if counts else 0
    clean = status == 0 and count > 0
    result = "nothing found" if clean else f"ended with status {status}"
    show(f"| {name} | {count:,} | {used:.0f} s | {result} |")
    return clean


def fuzz(name, seconds):
    """Fuzz a target in this process, which ends with it."""
    import atheris

    found = BUILD / "corpus" / name
    found.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("error")  # as in the tests
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MOST_MIB}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={BUILD}/findings/{name}-",
    ]
    with atheris.instrument_imports(include=PACKAGES):
        from tests.fuzz.targets import TARGETS
    seeds = str(CORPUS / name)
    atheris.Setup([sys.argv[0], *options, str(found), seeds], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
