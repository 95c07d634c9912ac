import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gru_training.data.digest import data_digest
from gru_training.errors import ConfigError, DataError
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.rows import Row, fixed_folds, hold_out
from tests.training.sentiment.reading import load_sentiment_data


def write_csv(path, rows):
    path.write_text("text,label\n" + "".join(f"{t},{c}\n" for t, c in rows))
    return SentimentDataConfig(data=path)


def test_a_drawn_split_is_stratified_complete_and_seeded(tmp_path):
    rows = [(f"word{i} here", "rare" if i % 10 == 0 else "often") for i in range(500)]
    config = write_csv(tmp_path / "a.csv", rows)
    data = load_sentiment_data(config, seed=0)
    assert data.classes == ("often", "rare")
    assert data.name == "a"
    sizes = {name: np.bincount(part.labels).tolist() for name, part in data.parts().items()}
    assert sizes == {"train": [360, 40], "validation": [45, 5], "test": [45, 5]}
    together = sorted(text for part in data.parts().values() for text in part.texts)
    assert together == sorted(text for text, _ in rows)
    labels = dict(rows)
    for part in data.parts().values():
        assert [data.classes[k] for k in part.labels] == [labels[text] for text in part.texts]
    assert load_sentiment_data(config, seed=0).test.texts == data.test.texts
    assert load_sentiment_data(config, seed=1).test.texts != data.test.texts


def test_equal_texts_stay_together():
    rows = [Row(f"{'Same' if i % 2 else 'same'}  text {i // 4}", 0) for i in range(200)]
    stay, out = hold_out(rows, 0.2, np.random.default_rng(0), [0] * len(rows))
    assert len(out) == 40
    key = {row.text.lower().replace("  ", " ") for row in out}
    assert not key & {row.text.lower().replace("  ", " ") for row in stay}


def test_many_classes_keep_names_and_numeric_order(tmp_path):
    rows = [(f"text {label} {i}", label) for label in ("10", "9", "2") for i in range(5)]
    data = load_sentiment_data(write_csv(tmp_path / "a.csv", rows), seed=0)
    assert data.classes == ("2", "9", "10")
    for part in data.parts().values():
        assert set(part.labels.tolist()) == {0, 1, 2}


def test_classes_have_the_same_order_in_every_process(tmp_path):
    """Although sets have no order and nan is not comparable: a resumed run relies on it."""
    code = """if True:
        import sys
        from pathlib import Path
        from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig
        from gru_training.sentiment.data import load_data
        print(load_data(SentimentConfig(data=SentimentDataConfig(data=Path(sys.argv[1])))).classes)
    """
    labels = ("nan", "1", "2", "0", "10")
    write_csv(tmp_path / "a.csv", [(f"text {k} {i}", k) for k in labels for i in range(5)])
    for seed in ("1", "2", "3"):
        answer = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "a.csv"], text=True, capture_output=True,
            check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert answer.stdout.strip() == "('0', '1', '10', '2', 'nan')"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(f"t{i}", "only") for i in range(9)], "at least two classes, got only 'only'"),
        (
            [*((f"t{i}", "a") for i in range(9)), ("x", "b")],
            "class 'b' has 1 row, expected at least 3",
        ),
    ],
)
def test_too_few_classes_or_rows(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        load_sentiment_data(write_csv(tmp_path / "a.csv", rows), seed=0)


def test_folds_are_fixed_balanced_and_cover_everything(tmp_path):
    rows = [(f"Review no {i}", "ab"[i % 3 == 0]) for i in range(300)]
    rows += [("review  NO 7", "a")] * 4
    config = write_csv(tmp_path / "a.csv", rows)
    tested = []
    for fold in range(10):
        data = load_sentiment_data(replace(config, fold=fold), seed=fold % 2)
        assert data.test.texts == load_sentiment_data(replace(config, fold=fold), 7).test.texts
        validated = load_sentiment_data(replace(config, fold=(fold + 1) % 10), 0).test.texts
        assert data.validation.texts == validated
        assert np.bincount(data.test.labels)[1] == 10
        keys = [{" ".join(t.lower().split()) for t in part.texts} for part in data.parts().values()]
        assert keys[0].isdisjoint(keys[1] | keys[2])
        assert keys[1].isdisjoint(keys[2])
        assert sum(len(part) for part in data.parts().values()) == len(rows)
        tested += data.test.texts
    assert sorted(tested) == sorted(text for text, _ in rows)


def test_folds_depend_on_the_texts_alone():
    rows = [Row(f"text {i}", i % 2) for i in range(100)]
    levels = [row.label for row in rows]
    folds = fixed_folds(rows, levels)
    assert fixed_folds(rows[::-1], levels[::-1]).tolist() == folds[::-1].tolist()
    # As drawn when the first results were published; a change would make them incomparable.
    assert folds[:12].tolist() == [6, 9, 2, 1, 4, 7, 6, 0, 6, 6, 8, 1]


@pytest.mark.parametrize(
    ("labels", "settings", "strata", "shares"),
    [
        # The rarest label of a row is a or c in 80 rows each.
        (
            ["a;b", "a", "b;c", "c", "b"],
            {"label_separator": ";"},
            lambda labels: labels[:, [0, 2]].sum(axis=0),
            [8, 8],
        ),
        (
            [k + 0.5 for k in range(50)],
            {"target_type": "number"},
            lambda labels: np.bincount(np.ceil(labels / 5).astype(int)),
            [0, *[2] * 10],  # of each tenth
        ),
    ],
)
def test_labels_and_numbers_have_folds_too(tmp_path, labels, settings, strata, shares):
    rows = [(f"text {i}", labels[i % len(labels)]) for i in range(200)]
    config = replace(write_csv(tmp_path / "a.csv", rows), fold=3, **settings)
    data = load_sentiment_data(config, 0)
    assert [len(part) for part in data.parts().values()] == [160, 20, 20]
    assert strata(data.test.labels).tolist() == shares
    assert strata(data.validation.labels).tolist() == shares


def test_fold_of_an_official_split_is_refused():
    with pytest.raises(DataError, match="--fold is for rows without an official split; grammar"):
        load_sentiment_data(SentimentDataConfig(fold=1), 0)
    with pytest.raises(ConfigError, match="--fold must be 0 to 9, got 10"):
        SentimentDataConfig(fold=10)


def test_the_digest_tells_what_changed(tmp_path):
    rows = [(f"text {i}", "ab"[i % 2]) for i in range(20)]

    def digest(rows):
        return data_digest(load_sentiment_data(write_csv(tmp_path / "a.csv", rows), 0).contents())

    first = digest(rows)
    assert digest(rows) == first
    assert digest([("test 0", "a"), *rows[1:]]) != first
    assert digest([("text 0", "b"), ("text 1", "a"), *rows[2:]]) != first
    assert digest([(text, label.upper()) for text, label in rows]) != first
