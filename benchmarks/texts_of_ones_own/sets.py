"""Data sets that no preset knows, made from the bundled sentences and a small grammar.

Further ones come from packages (`benchmarks.texts_of_ones_own.packages`).

========= =========================================================================================
few       200 sentences on products of one shop, positive or negative
uci       3,000 sentences of three shops, positive or negative
origin    8 classes: from which of four sources a sentence is, and whether it is positive
unequal   5 sources, the rarest with a fiftieth of the rows of the most frequent
labels    texts of one to three sentences; labels are their sources, and whether one is negative
mixed     made-up tickets in German, Spanish, English and Chinese, 6 classes, with misspellings
long      2,400 film reviews of 400 to 1,600 words; for `settings` only
========= =========================================================================================
"""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.texts_of_ones_own.packages import PACKAGED, PUBLISHED
from gru_training.sentiment.corpora import read_corpus
from gru_training.sentiment.rows import Row

BUNDLED = ("few", "uci", "origin", "unequal", "labels", "mixed")
SETS = (*BUNDLED, *PACKAGED, *PUBLISHED)
_SIGNS = ("negative", "positive")
_SOURCES = {
    "amazon": "uci_sentences/amazon_cells_labelled.txt",
    "films": "uci_sentences/imdb_labelled.txt",
    "yelp": "uci_sentences/yelp_labelled.txt",
}


def write_set(name: str, data: Path, packages: Path, folder: Path) -> Path:
    """Write a set as a file; the same bytes everywhere.

    Args:
        name: Name of a set in `SETS`, or `long`.
        data: Folder with the bundled data.
        packages: Folder with the files of packages.
        folder: Folder to write to.
    """
    made: dict[str, Callable[[Path], Sequence[tuple[str, str | list[str]]]]] = {
        "few": lambda data: sentences(data)["amazon"][:200],
        "uci": _uci,
        "origin": _origin,
        "unequal": _unequal,
        "labels": _labels,
        "mixed": _mixed,
        "long": _long,
    }
    packaged = {**PACKAGED, **PUBLISHED}
    rows = packaged[name](packages) if name in packaged else made[name](data)
    path = folder / f"{name}.{'jsonl' if name == 'labels' else 'csv'}"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        if name == "labels":
            for text, label in rows:
                file.write(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n")
        else:
            writer = csv.writer(file)
            writer.writerows([("text", "label", "part")[: len(rows[0])], *rows])
    return path


def sentences(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Sentences with their sign, by source, in an order of chance."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, file in _SOURCES.items():
        lines = (data / file).read_text("utf-8").split("\n")
        cells = [line.rsplit("\t", 1) for line in lines if "\t" in line]
        found[name] = [(text.strip(), _SIGNS[int(sign)]) for text, sign in cells]
    corpus = read_corpus(data / "mr")
    found["critics"] = [(row.text, _SIGNS[_sign(row)]) for row in corpus.train]
    rng = np.random.default_rng(0)
    return {name: [rows[k] for k in rng.permutation(len(rows))] for name, rows in found.items()}


def _sign(row: Row) -> int:
    assert isinstance(row.label, int)
    return row.label


def _uci(data: Path) -> list[tuple[str, str | list[str]]]:
    found = sentences(data)
    return [row for name in _SOURCES for row in found[name]]


def _origin(data: Path) -> list[tuple[str, str | list[str]]]:
    found = sentences(data)
    return [(text, f"{name} {sign}") for name, rows in found.items() for text, sign in rows[:1500]]


def _unequal(data: Path) -> list[tuple[str, str | list[str]]]:
    found = sentences(data)
    sizes = {"critics": 4000, "yelp": 900, "amazon": 400, "films": 160}
    rows: list[tuple[str, str | list[str]]] = [
        (text, name) for name, size in sizes.items() for text, _ in found[name][:size]
    ]
    # The rarest class is a mixture that only words of both tell.
    pairs = zip(found["yelp"][900:980], found["amazon"][400:480], strict=True)
    return rows + [(f"{one} {two}", "yelp and amazon") for (one, _), (two, _) in pairs]


def _labels(data: Path) -> list[tuple[str, str | list[str]]]:
    found = sentences(data)
    rng = np.random.default_rng(1)
    names, shares = list(found), [0.15, 0.1, 0.25, 0.5]
    rows: list[tuple[str, str | list[str]]] = []
    for _ in range(5000):
        drawn = rng.choice(names, rng.integers(1, 4), replace=False, p=shares)
        parts = [found[name][rng.integers(len(found[name]))] for name in drawn]
        held = {str(name) for name in drawn}
        if any(sign == "negative" for _, sign in parts):
            held.add("negative")
        rows.append((" ".join(text for text, _ in parts), sorted(held)))
    return rows


_TOPICS = {
    "billing": (
        "die Rechnung stimmt nicht",
        "zweimal abgebucht",
        "la factura es incorrecta",
        "me cobraron dos veces",
        "the invoice is wrong",
        "I was charged twice",
        "账单有错误",
        "被扣了两次钱",
    ),
    "delivery": (
        "das Paket fehlt noch",
        "der Bote kam nicht",
        "el paquete no ha llegado",
        "falta mi pedido",
        "the parcel is missing",
        "my order never came",
        "包裹还没到",
        "快递没有来",
    ),
    "login": (
        "ich kann mich nicht anmelden",
        "das Passwort geht nicht",
        "no puedo entrar",
        "la clave no funciona",
        "I cannot sign in",
        "the password fails",
        "我登录不了",
        "密码不能用",
    ),
    "bug": (
        "die App stürzt ab",
        "der Bildschirm bleibt weiß",
        "la aplicación se cierra",
        "la pantalla queda en blanco",
        "the app crashes",
        "the screen stays white",
        "应用崩溃了",
        "屏幕一直是白的",
    ),
    "cancel": (
        "ich möchte kündigen",
        "bitte den Vertrag beenden",
        "quiero darme de baja",
        "cancelen mi contrato",
        "I want to cancel",
        "please end my contract",
        "我要取消",
        "请结束我的合同",
    ),
    "praise": (
        "alles bestens, danke",
        "tolle Hilfe",
        "todo perfecto, gracias",
        "muy buena ayuda",
        "all is well, thanks",
        "great help",
        "一切都很好",
        "帮助很大",
    ),
}
_OPENINGS = (
    ("Guten Tag,", "Hallo 👋", "wie schon gesagt:", ""),
    ("Buenas,", "Hola 👋", "como ya dije:", ""),
    ("Hello,", "Hi there 👋", "as I said before:", ""),
    ("你好，", "您好 👋", "我说过：", ""),
)
_TURNS = (
    ("es geht nicht darum: {}; sondern: {}", "{1}, aber nicht: {0}"),
    ("no se trata de: {}; sino de: {}", "{1}, pero no: {0}"),
    ("this is not about: {}; it is about: {}", "{1}, but not: {0}"),
    ("不是因为{}，而是因为{}", "{1}，但不是因为{0}"),
)


def _mixed(data: Path) -> list[tuple[str, str | list[str]]]:  # noqa: ARG001
    rng = np.random.default_rng(2)
    names = list(_TOPICS)
    rows: list[tuple[str, str | list[str]]] = []
    for _ in range(5000):
        topic, other = rng.choice(names, 2, replace=False)
        language = int(rng.integers(4))
        said, denied = (
            _TOPICS[str(name)][2 * language + int(rng.integers(2))] for name in (topic, other)
        )
        if rng.random() < 0.5:
            said = _TURNS[language][int(rng.integers(2))].format(denied, said)
        text = f"{_OPENINGS[language][int(rng.integers(4))]} {said} #{rng.integers(10_000)}"
        rows.append((_misspelt(text.strip(), rng), str(topic)))
    return rows


def _misspelt(text: str, rng: np.random.Generator) -> str:
    """Swap neighbouring letters in some words."""
    words = text.split(" ")
    for number, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and rng.random() < 0.1:
            place = int(rng.integers(1, len(word) - 2))
            swapped = word[place + 1] + word[place]
            words[number] = word[:place] + swapped + word[place + 2 :]
    return " ".join(words)


def _long(data: Path) -> list[tuple[str, str | list[str]]]:
    """Draw 1,200 long reviews of each class."""
    rng = np.random.default_rng(3)
    found: list[tuple[str, str | list[str]]] = []
    with gzip.open(data / "imdb/imdb_train.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        header = next(lines).rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=True)) for line in lines]
    for label, sign in enumerate(_SIGNS):
        texts = [
            row["text"]
            for row in rows
            if row["label"] == str(label) and 400 <= len(row["text"].split()) <= 1600
        ]
        found += [(texts[k], sign) for k in rng.permutation(len(texts))[:1200]]
    return found
