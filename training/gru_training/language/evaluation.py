"""The report of a language model."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from gru_serving.preprocessing.texts import UNKNOWN
from gru_training.language.config import LanguageConfig
from gru_training.language.data import LanguageData
from gru_training.language.kneser_ney import KneserNey
from gru_training.language.model import LanguageModel
from gru_training.language.reading import END_ID, ReadDocuments, TokenPart, joined
from gru_training.language.training import Evaluation, TrainedModel
from gru_training.plots import draw_curves
from gru_training.runs.report_page import markdown_table
from gru_training.runs.writer import TrainingRunWriter

ORDERS = {"words": 5, "characters": 6}
"""Tokens in the longest n-gram."""


class Figures(NamedTuple):
    """The quality of a model's predictions of held-out documents."""

    perplexity: float
    """e to the mean cost of a token in nats; the ends of documents count as tokens, and so does
    `unknown`, whichever word it stands for.
    """
    bits_per_character: float
    """All bits, including those for the letters of unknown words, divided by the characters of the
    text.
    """


def _figures_of(nats: float, part: TokenPart, read: ReadDocuments) -> Figures:
    """Compute the figures of a part whose tokens cost this many nats on average."""
    bits = nats * part.tokens / math.log(2) + read.spelling.bits_of(part.unknown)
    return Figures(math.exp(nats), bits / part.characters)


def baseline_figures(read: ReadDocuments) -> dict[str, dict[str, Figures]]:
    """Compute the figures of simple models, by name and held-out part."""
    train = _with_ends(read.train.rows)
    size = len(read.vocabulary)
    # Each token counts one more than its occurrences, so that an unseen one has a probability, too.
    counts = np.bincount(np.concatenate(train), minlength=size)[1:] + 1
    unigram = np.concatenate([[np.nan], np.log(counts / counts.sum())])
    order = ORDERS[read.unit]
    kneser_ney = KneserNey(train, size, order)
    found: dict[str, dict[str, Figures]] = {"unigram": {}, f"Kneser-Ney {order}-gram": {}}
    for name in ("validation", "test"):
        part = read.parts()[name]
        rows = _with_ends(part.rows)
        of_part = {
            "unigram": -unigram[np.concatenate(rows)].mean(),
            f"Kneser-Ney {order}-gram": -np.log(kneser_ney.probabilities(rows)).mean(),
        }
        for model, nats in of_part.items():
            found[model][name] = _figures_of(float(nats), part, read)
    return found


def as_json(figures: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """Return the figures by part, as stored in `metrics.json`."""
    return {part: each._asdict() for part, each in figures.items()}


def _with_ends(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    end = np.array([END_ID], np.int32)
    return [np.concatenate([row, end]) for row in rows]


TEMPERATURES = (0.5, 0.8, 1.0)
"""Temperature; below 1 the likelier tokens are drawn more often."""


def sampled_rows(
    model: LanguageModel, temperatures: Sequence[float], length: int, seed: int
) -> list[list[int]]:
    """Sample token ids of documents from their beginning, one document for each temperature.

    Args:
        model: Model that writes.
        temperatures: Log-odds are divided by them.
        length: Most tokens; a document may end before.
        seed: Seed of the draws.
    """

    @tf.function(reduce_retracing=True, autograph=False)
    def step(ids: tf.Tensor, states: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        features, after = model.read(ids[:, tf.newaxis], states)
        return model.logits(features[:, 0]), after

    rng = np.random.default_rng(seed)
    ids = np.full(len(temperatures), END_ID, np.int32)
    states = [tf.zeros((len(ids), gru.units)) for gru in model.grus]
    rows: list[list[int]] = [[] for _ in ids]
    ended = np.zeros(len(ids), bool)
    for _ in range(length):
        logits, states = step(tf.constant(ids), states)
        scaled = logits.numpy() / np.array(temperatures)[:, np.newaxis]
        scaled[:, UNKNOWN - 1] = -np.inf
        ids = (scaled + rng.gumbel(size=scaled.shape)).argmax(axis=1).astype(np.int32) + 1
        ended |= ids == END_ID
        for row, number, over in zip(rows, ids, ended, strict=True):
            if not over:
                row.append(int(number))
        if ended.all():
            break
    return rows


_SAMPLE = {"words": 60, "characters": 240}
"""Number of tokens in a sample."""
_FENCE = "~~~"
_MOST_TEXTS = 200
_MOST_LETTERS = 2000
TEXTS = "held_out_texts.json"


class Reported(NamedTuple):
    """The results from which a report is written."""

    data: LanguageData
    read: ReadDocuments
    trained: TrainedModel
    baselines: Mapping[str, Mapping[str, Figures]]
    config: LanguageConfig


def write_report(writer: TrainingRunWriter, found: Reported, summary: Mapping[str, Any]) -> None:
    """Measure the model, and write figures, pictures, samples and the report.

    Args:
        writer: Writer of the run.
        found: Results to report.
        summary: Summary of the training, for `metrics.json`.
    """
    model, settings = found.trained.model, found.config.training
    measure = Evaluation(model, settings.batch_size, settings.steps)
    result, read = found.trained.result, found.read
    nats = {
        "validation": result.epochs[result.best_epoch - 1].validation["loss"],
        "test": measure.nats(read.test.rows),
    }
    own = {name: _figures_of(each, read.parts()[name], read) for name, each in nats.items()}
    metrics = {
        "model": as_json(own),
        "baselines": {name: as_json(each) for name, each in found.baselines.items()},
        "data": {
            name: {
                "documents": len(part.rows),
                "tokens": part.tokens,
                "characters": part.characters,
                "unknown_share": part.unknown_share,
            }
            for name, part in found.read.parts().items()
        },
        "vocabulary_size": len(found.read.vocabulary),
        "parameters": model.count_params(),
        "sampled": found.trained.samples,
        "tokens_per_second": _tokens_per_second(found),
        "notes": list(found.data.notes),
        **summary,
    }
    writer.write_json("metrics.json", metrics)
    texts = [text[:_MOST_LETTERS] for text in found.data.test[:_MOST_TEXTS]]
    writer.write_json(TEXTS, texts)
    draw_curves(result.epochs, result.best_epoch, ("loss", "bits"), writer.path / "curves.png")
    writer.write_text("report.md", _markdown(found, metrics))


def _tokens_per_second(found: Reported) -> float:
    """Compute the tokens per second of the median epoch, including its validation."""
    seconds = statistics.median(record.seconds for record in found.trained.result.epochs)
    return round(found.read.train.tokens / max(seconds, 1e-9), 1)


def _markdown(found: Reported, metrics: Mapping[str, Any]) -> str:
    unit = found.read.unit
    lines = [f"# Language model of {found.data.name}, by {unit}", "", _in_short(metrics), ""]
    lines += _table(metrics)
    lines += ["", *_explained(found, metrics), ""]
    lines += [f"- {note}" for note in found.data.notes]
    lines += ["", "## Training", "", _training(found, metrics), "", "![curves](curves.png)", ""]
    lines += ["## Samples", "", "From the beginning of a document, for each temperature.", ""]
    tokens = found.read.vocabulary.tokens
    samples = sampled_rows(
        found.trained.model, TEMPERATURES, _SAMPLE[unit], found.config.training.seed
    )
    for temperature, row in zip(TEMPERATURES, samples, strict=True):
        text = joined((tokens[number] for number in row), unit)
        lines += [f"Temperature {temperature}:", "", _FENCE, text, _FENCE, ""]
    return "\n".join(lines)


def _in_short(metrics: Mapping[str, Any]) -> str:
    """State the main results."""
    bits = metrics["model"]["test"]["bits_per_character"]
    floors = metrics["baselines"]
    name = min(floors, key=lambda name: floors[name]["validation"]["bits_per_character"])
    floor = floors[name]["test"]["bits_per_character"]
    return (
        f"**The model needs {bits:.2f} bits for each character of new text; the best simple model "
        f"({name}) needs {floor:.2f}.** The fewer bits, the better it predicts the text."
    )


def _table(metrics: Mapping[str, Any]) -> list[str]:
    rows = [("", "perplexity, validation", "test", "bits per character, validation", "test")]
    for name, parts in {"GRU": metrics["model"], **metrics["baselines"]}.items():
        cells = (
            format(parts[part][key], style)
            for key, style in (("perplexity", ",.2f"), ("bits_per_character", ".3f"))
            for part in ("validation", "test")
        )
        rows.append((name, *cells))
    return markdown_table(rows)


def _explained(found: Reported, metrics: Mapping[str, Any]) -> list[str]:
    """Explain the figures."""
    known = metrics["vocabulary_size"] - 2
    shares = ", ".join(
        f"{metrics['data'][part]['unknown_share']:.2%} of {part}" for part in ("validation", "test")
    )
    lines = [
        f"Perplexity is of {found.read.unit}, the end of each document among them, over {known:,} "
        f"known ones and one that stands for all others ({shares}). All models have the same "
        "vocabulary.",
    ]
    if found.read.unit == "words":
        lines.append(
            "Bits per character also pay for the letters of unknown words, by how often each "
            "letter occurs in rare words. The text is in lower case, with one blank behind each "
            "word."
        )
    for part in ("validation", "test"):
        of_part = metrics["data"][part]
        whole = len(found.data.parts()[part])
        if of_part["documents"] < whole:
            lines.append(
                f"Measured on {of_part['documents']:,} of {whole:,} documents of {part} "
                "(--set held_out_tokens=N)."
            )
    return lines


def _training(found: Reported, metrics: Mapping[str, Any]) -> str:
    of_train = metrics["data"]["train"]
    text = (
        f"{of_train['tokens']:,} {found.read.unit} of {of_train['documents']:,} documents, "
        f"{metrics['parameters']:,} weights, {metrics['tokens_per_second']:,.0f} "
        f"{found.read.unit} per second, with the time for measuring the validation; best epoch "
        f"{metrics['best_epoch']} of {metrics['epochs']}."
    )
    if metrics["sampled"]:
        text += (
            f" While training, each word was compared with {metrics['sampled']:,} drawn ones, so "
            "that the training loss is lower than one over all words; validation and test are "
            "over all."
        )
    return text
