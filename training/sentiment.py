"""From labelled texts to a run directory: the sentiment pipeline."""

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from sklearn.metrics import precision_recall_fscore_support

from training import baselines, learning_curves, report
from training.batches import LengthBucketedBatches
from training.config import to_dict
from training.learning_rate import learning_rate_schedule
from training.loop import FitResult, evaluate, fit, make_eval_step, make_train_step
from training.progress import TrainingProgress
from training.run_summary import run_summary
from training.sentiment_config import SentimentConfig
from training.sentiment_data import SentimentData, load_sentiment_data
from training.sentiment_model import build_sentiment_model
from training.sentiment_run import SentimentRun
from training.training_run_writer import TrainingRunWriter
from training.vocabulary import TextPreprocessor, build_vocabulary, token_ids

BATCH_SIGNATURE = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
"""Word ids (B, T) and class numbers (B,)."""
_EVALUATION_BATCH = 256


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Negative log-probability of the right class, (B,), of labels (B,) and logits (B, C)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Whether the likeliest class is the right one, (B,) bool."""
    return tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)


def train_sentiment(
    config: SentimentConfig, console: Console | None = None, resume: bool = False
) -> SentimentRun:
    """Trains a classifier and writes its run directory.

    Seeds Python's, NumPy's and Keras' global random numbers. On one machine's CPU the same
    settings give the same weights; on a GPU, or on other processors, they may differ in the last
    digits, and training magnifies that.

    Args:
        config: every setting.
        console: where to show progress; none is shown by default.
        resume: go on from the checkpoint of a run of this name that was cut short, if there is one.

    Returns:
        The run, complete on disk. After SIGINT it holds the best epoch until then and
        ``metrics["interrupted"]`` is true.

    Raises:
        TrainingError: settings, data or run directory cannot be used; no run is left behind.

    Killed at any moment, it leaves a checkpoint at most, from which ``resume`` leads to the same
    weights.
    """
    console = console or Console(quiet=True)
    started = time.perf_counter()
    name = config.run.name or _default_name(config)
    with TrainingRunWriter(config, "sentiment", name, resume) as writer:
        keras.utils.set_random_seed(config.training.seed)
        with console.status("reading the data ..."):
            data = load_sentiment_data(config.data, config.training.seed)
            vocabulary = build_vocabulary(
                data.train.texts, config.data.max_vocabulary, config.data.min_count
            )
            preprocessor = TextPreprocessor(vocabulary, config.data.max_tokens)
            parts = {
                name: baselines.TokenRows(token_ids(preprocessor, part.texts), part.labels)
                for name, part in data.parts().items()
            }
        _describe(data, console)
        model = build_sentiment_model(config.model, len(vocabulary), len(data.classes))
        result, losses = _train(model, parts, config, writer, console)
        with console.status("testing ..."):
            scores = predict_scores(model, parts["test"].ids)
        floors = _baselines(parts, len(data.classes), config.run.ngram_baseline, console)

        predicted = scores.argmax(axis=1)
        metrics: dict[str, Any] = {
            "task": "sentiment",
            "data": {
                "name": data.name,
                "rows": {name: len(part) for name, part in data.parts().items()},
                "vocabulary": len(vocabulary),
                "notes": list(data.notes),
            },
            "model": {**losses, "parameters": model.count_params()},
            "baselines": {
                floor.name: {
                    "validation_accuracy": floor.validation_accuracy,
                    "test_accuracy": floor.test_accuracy,
                }
                for floor in floors
            },
            "same_words": same_words(parts["test"], predicted, floors[1].test_predictions),
            "per_class": _per_class(data, predicted),
            **run_summary(result, config.training.seed, started),
        }
        vocabulary.save(writer.path / "vocabulary.txt")
        writer.write_json("classes.json", list(data.classes))
        model.save(writer.path / "model.keras")
        writer.write_json("history.json", [to_dict(record) for record in result.epochs])
        predictions = _predictions(data, scores)
        writer.write_text(
            "test_predictions.jsonl",
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in predictions),
        )
        learning_curves.draw_curves(
            result.epochs, result.best_epoch, ("loss", "accuracy"), writer.path / "curves.png"
        )
        report.draw_confusion_matrix(
            report.confusion_counts(data.test.labels, predicted, len(data.classes)),
            data.classes,
            writer.path / "confusion_matrix.png",
        )
        writer.write_text(
            "report.md", report.write_summary(metrics, data.classes, _surest_mistakes(predictions))
        )
        writer.write_json("metrics.json", metrics)
        return SentimentRun.open(writer.publish())


def predict_scores(model: keras.Model, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Class probabilities (N, C) float32 of N rows of word ids, in the order of the rows."""

    @tf.function(input_signature=BATCH_SIGNATURE[:1])
    def softmax(token_ids: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(model(token_ids, training=False))

    batches = LengthBucketedBatches(rows, np.zeros(len(rows), np.int32), _EVALUATION_BATCH)
    scores = np.concatenate([softmax(inputs).numpy() for inputs, _ in batches.in_length_order()])
    restored = np.empty_like(scores)
    restored[batches.length_order()] = scores
    return restored


def _train(
    model: keras.Model,
    parts: dict[str, baselines.TokenRows],
    config: SentimentConfig,
    writer: TrainingRunWriter,
    console: Console,
) -> tuple[FitResult, dict[str, dict[str, float]]]:
    """Fits the model; also returns loss and accuracy on validation and test."""
    settings = config.training
    batches = {
        name: LengthBucketedBatches(
            rows.ids,
            rows.labels,
            settings.batch_size if name == "train" else _EVALUATION_BATCH,
            settings.seed,
        )
        for name, rows in parts.items()
    }
    rate = learning_rate_schedule(settings, len(batches["train"]))
    optimizer = keras.optimizers.Adam(rate)
    metrics = {"accuracy": accuracy}
    eval_step = make_eval_step(model, cross_entropy, metrics, BATCH_SIGNATURE)
    train_step = make_train_step(
        model, optimizer, cross_entropy, metrics, BATCH_SIGNATURE, settings.clip_norm
    )
    with TrainingProgress(console, settings.epochs, len(batches["train"])) as progress:
        result = fit(
            model,
            train_step,
            eval_step,
            batches["train"],
            batches["validation"].in_length_order,
            epochs=settings.epochs,
            patience=settings.patience,
            score=lambda means: (means["accuracy"], -means["loss"]),
            learning_rate=lambda: float(optimizer.learning_rate),
            progress=progress,
            checkpoint=writer.checkpoint([*model.variables, *optimizer.variables]),
        )
    with console.status("testing ..."):
        losses = {
            name: evaluate(eval_step, batches[name].in_length_order())
            for name in ("validation", "test")
        }
    return result, losses


def _baselines(
    parts: dict[str, baselines.TokenRows], classes: int, ngrams: bool, console: Console
) -> list[baselines.BaselineResult]:
    rows = parts["train"], parts["validation"], parts["test"]
    with console.status("fitting the baselines ..."):
        floors = [baselines.majority_class(*rows), baselines.bag_of_words(*rows)]
        if ngrams:
            floors.append(baselines.nb_weighted_ngrams(*rows, classes))
    return floors


def same_words(
    test: baselines.TokenRows, predicted: np.ndarray, bag_predicted: np.ndarray
) -> dict[str, Any]:
    """How often both of two rows with the same words and different labels are got right."""
    bags: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(test.ids):
        bags[tuple(sorted(row.tolist()))].append(index)

    def pairs(counted: np.ndarray) -> int:
        total = 0
        for indices in bags.values():
            labels = test.labels[indices][counted[indices]]
            total += (len(labels) ** 2 - int(np.sum(np.bincount(labels) ** 2))) // 2
        return total

    everything = pairs(np.ones(len(test.labels), bool))
    result: dict[str, Any] = {"pairs": everything}
    for name, answers in (("gru", predicted), ("bag_of_words", bag_predicted)):
        result[name] = pairs(answers == test.labels) / everything if everything else None
    return result


def _per_class(data: SentimentData, predicted: np.ndarray) -> dict[str, dict[str, float]]:
    columns = precision_recall_fscore_support(
        data.test.labels, predicted, labels=range(len(data.classes)), zero_division=0.0
    )
    names = ("precision", "recall", "f1", "rows")
    return {
        label: {name: column[k].item() for name, column in zip(names, columns, strict=True)}
        for k, label in enumerate(data.classes)
    }


def _predictions(data: SentimentData, scores: np.ndarray) -> list[dict[str, Any]]:
    return [
        {
            "text": text,
            "label": data.classes[label],
            "predicted": data.classes[row.argmax()],
            "scores": [float(score) for score in row],
        }
        for text, label, row in zip(data.test.texts, data.test.labels, scores, strict=True)
    ]


def _surest_mistakes(predictions: list[dict[str, Any]], most: int = 10) -> list[dict[str, Any]]:
    wrong = [
        {**row, "probability": max(row["scores"])}
        for row in predictions
        if row["label"] != row["predicted"]
    ]
    return sorted(wrong, key=lambda row: -row["probability"])[:most]


def _describe(data: SentimentData, console: Console) -> None:
    rows = ", ".join(f"{len(part):,} {name}" for name, part in data.parts().items())
    console.print(f"data {data.name}: {rows} rows", markup=False, highlight=False)
    for note in data.notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def _default_name(config: SentimentConfig) -> str:
    source = config.data.data
    data = source.resolve().name.split(".")[0] if source else "grammar"
    return f"sentiment-{data}-{datetime.now():%Y%m%d-%H%M%S}"
