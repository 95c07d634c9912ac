"""The results table, built from hand-written runs."""

import json

import pytest

from benchmarks.forecasting import main, markdown, table
from gru_training.config import to_dict
from gru_training.forecasting.config import ForecastingConfig, ForecastingTrainingConfig
from gru_training.forecasting.run import ForecastingRun
from gru_training.runs.directory import RunWriter


def write_run(folder, name, seed, mse, epochs=3):
    config = ForecastingConfig(training=ForecastingTrainingConfig(seed=seed, epochs=epochs))
    metrics = {
        "data": {"name": "waves", "horizon": 24},
        "model": {
            "validation": {"mse": mse / 2, "mae": 0.1},
            "test": {"mse": mse, "mae": mse + 0.1},
        },
        "intervals": [{"nominal": 0.8, "coverage": 0.79}, {"nominal": 0.95, "coverage": 0.96}],
        "baselines": {"ridge": {"test": {"mse": 0.5}}},
        "seed": seed,
        "seconds": 10.0 + seed,
    }
    with RunWriter(folder, name) as writer:
        writer.write_json("config.json", {"task": "forecasting", **to_dict(config)})
        writer.write_json("metrics.json", metrics)
        writer.publish()
    return folder / name


def test_runs_that_differ_in_the_seed_alone_make_one_row(tmp_path, capsys):
    runs = [write_run(tmp_path, f"s{seed}", seed, mse) for seed, mse in enumerate((0.3, 0.4, 0.5))]
    runs.append(write_run(tmp_path, "longer", 0, 0.25, epochs=9))
    rows = table([ForecastingRun.open(path) for path in runs])
    assert [row["seeds"] for row in rows] == [[0, 1, 2], [0]]
    lines = markdown(rows).splitlines()
    assert "| 0.4000 ± 0.1000 | 0.5000 ± 0.1000 | 96.0%, 79.0% | 11 s | 0.5000 |" in lines[2]
    assert "| 0.2500 | 0.3500 |" in lines[3]
    assert main([*map(str, runs), "--json", str(tmp_path / "rows.json")]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert json.loads((tmp_path / "rows.json").read_text())[0]["mse"] == [0.3, 0.4, 0.5]


def test_what_is_no_run_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "nix")])
    assert "there is no run directory" in capsys.readouterr().err
