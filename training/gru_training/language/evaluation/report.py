"""The report of a language model, for people."""

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gru_training.language.config import LanguageConfig
from gru_training.language.data import LanguageData
from gru_training.language.evaluation.figures import Figures, as_json, figures_of
from gru_training.language.evaluation.pictures import draw_surprise, draw_units
from gru_training.language.evaluation.samples import TEMPERATURES, sampled_rows
from gru_training.language.evaluation.trace import trace_of
from gru_training.language.network.training import Evaluation, TrainedModel
from gru_training.language.reading import ReadDocuments
from gru_training.language.shown import joined
from gru_training.plots.learning_curves import draw_curves
from gru_training.runs.writer import TrainingRunWriter

_SAMPLE = {"words": 60, "characters": 240}
_DRAWN = {"words": 48, "characters": 120}
"""Tokens in a sample, and in the pictures."""
_FENCE = "~~~"
_MOST_TEXTS = 200
_MOST_LETTERS = 2000
TEXTS = "held_out_texts.json"


class Reported(NamedTuple):
    """What a report is written of."""

    data: LanguageData
    read: ReadDocuments
    trained: TrainedModel
    baselines: Mapping[str, Mapping[str, Figures]]
    config: LanguageConfig


def write_report(writer: TrainingRunWriter, found: Reported, summary: Mapping[str, Any]) -> None:
    """Measure the model, and write figures, pictures, samples and the report.

    Args:
        writer: Of the run.
        found: What to report.
        summary: Of the training, for `metrics.json`.
    """
    model, settings = found.trained.model, found.config.training
    measure = Evaluation(model, settings.batch_size, settings.steps)
    result, read = found.trained.result, found.read
    nats = {
        "validation": result.epochs[result.best_epoch - 1].validation["loss"],
        "test": measure.nats(read.test.rows),
    }
    own = {name: figures_of(each, read.parts()[name], read) for name, each in nats.items()}
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
    units = _draw_text(writer, found)
    writer.write_text("report.md", _markdown(found, metrics, units))


def _draw_text(writer: TrainingRunWriter, found: Reported) -> list[int]:
    """The pictures along the longest of the first test documents; the units shown."""
    row = max(found.read.test.rows[:_MOST_TEXTS], key=len)[: _DRAWN[found.read.unit]]
    if not len(row):
        return []
    tokens = [found.read.vocabulary.tokens[number] for number in row]
    trace = trace_of(found.trained.model, np.asarray(row))
    draw_surprise(tokens, trace.bits, writer.path / "surprise.png")
    return draw_units(tokens, trace.states, writer.path / "units.png")


def _tokens_per_second(found: Reported) -> float:
    """Trained on, in the median epoch; the time for measuring the validation is in it."""
    seconds = statistics.median(record.seconds for record in found.trained.result.epochs)
    return round(found.read.train.tokens / max(seconds, 1e-9), 1)


def _markdown(found: Reported, metrics: Mapping[str, Any], units: list[int]) -> str:
    unit = found.read.unit
    lines = [f"# Language model of {found.data.name}, by {unit}", "", *_table(metrics)]
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
    if units:
        lines += [
            "## Along a test document",
            "",
            f"What each of its first {unit} costs, given those before it.",
            "",
            "![surprise](surprise.png)",
            "",
            f"The state of the {len(units)} units of the last layer that move most.",
            "",
            "![units](units.png)",
            "",
        ]
    return "\n".join(lines)


def _table(metrics: Mapping[str, Any]) -> list[str]:
    lines = [
        "| | perplexity, validation | test | bits per character, validation | test |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, parts in {"GRU": metrics["model"], **metrics["baselines"]}.items():
        cells = [
            format(parts[part][key], style)
            for key, style in (("perplexity", ",.2f"), ("bits_per_character", ".3f"))
            for part in ("validation", "test")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _explained(found: Reported, metrics: Mapping[str, Any]) -> list[str]:
    """What the figures are of."""
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
                "(--held-out-tokens)."
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
