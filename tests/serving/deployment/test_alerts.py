"""The alerts on the error budget, on series that a live server exported."""

import shutil
import subprocess

import httpx
import numpy as np
import pytest
import yaml

from gru_serving.client import connect
from gru_serving.errors import DeadlineExceeded, InvalidArgument
from gru_serving.telemetry.metrics import DEFAULT_PATH
from tests.serving.servers import REPOSITORY, running

RULES = REPOSITORY / "docker" / "prometheus" / "alerts.yml"
COUNT = ":tensorflow:serving:request_count"
pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (of Prometheus) is not installed"
)


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    """The counts of requests on the pages of a server: after each kind, one page."""
    folder = tmp_path_factory.mktemp("exported")
    monitoring = folder / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    flags = (
        "--model_name=m",
        f"--model_base_path={models / 'affine'}",
        f"--monitoring_config_file={monitoring}",
        "--rest_api_timeout_in_ms=200",
    )
    good = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}
    pages = {}
    with running(folder / "log", *flags) as server, connect(server.rest, retries=0) as client:

        def note(name):
            page = httpx.get(server.rest + DEFAULT_PATH, trust_env=False, verify=False).text
            lines = [line for line in page.splitlines() if line.startswith(COUNT)]
            pages[name] = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}

        for _ in range(100):
            client.predict(good, "m")
        note("good")
        for _ in range(5):
            with pytest.raises(InvalidArgument):
                client.predict({**good, "b": np.zeros((1, 1, 7), np.float32)}, "m")
        note("refused")
        for _ in range(5):
            with pytest.raises(DeadlineExceeded):
                client.predict(np.int64(10**10), "m", signature="spin")
        note("failed")
    return pages


def told(tmp_path, series, alert, time):
    """What promtool says of an alert that is expected not to fire."""
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in series.items()
                ],
                "alert_rule_test": [{"eval_time": time, "alertname": alert}],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    done = subprocess.run(
        ["promtool", "test", "rules", path], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("page", "fires"), [("good", False), ("refused", False), ("failed", True)])
@pytest.mark.parametrize(
    ("alert", "time"), [("ErrorBudgetBurnsFast", "2h"), ("ErrorBudgetBurnsSlowly", "2d")]
)
def test_only_faults_of_the_server_use_the_budget_up(exported, tmp_path, page, fires, alert, time):
    """As many requests in every minute as the server had until that page."""
    series = {name: f"0+{count}x3000" for name, count in exported[page].items()}
    status, said = told(tmp_path, series, alert, time)
    assert (status != 0) is fires, said
    if fires:
        assert 'model_name="m"' in said
        share = 5 / sum(exported[page].values())
        assert f"{share:.4%}"[:4] in said


def test_a_burst_of_faults_long_ago_does_not_page(exported, tmp_path):
    """The short window ends the alert, although the long one still has the faults."""
    series = {
        name: f"0+{count}x60 {60 * count}+0x120"
        if "DEADLINE_EXCEEDED" in name
        else f"0+{count}x180"
        for name, count in exported["failed"].items()
    }
    status, said = told(tmp_path, series, "ErrorBudgetBurnsFast", "60m")
    assert status != 0, said
    status, said = told(tmp_path, series, "ErrorBudgetBurnsFast", "130m")
    assert status == 0, said
