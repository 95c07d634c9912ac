"""Prometheus in the deployment: every rule and every panel finds what the servers expose."""

import json
import re
import time

import pytest

from .images import EMBEDDED, REPOSITORY
from .steady_load import steady_load

pytestmark = pytest.mark.docker

RULES = REPOSITORY / "docker" / "prometheus"
DASHBOARD = REPOSITORY / "docker" / "grafana" / "dashboards" / "serving.json"
METRIC = re.compile(r"(?::tensorflow|gru_serve)[\w:]+")


def expressions():
    board = json.loads(DASHBOARD.read_text())
    # As Grafana asks with all models, versions and instances chosen.
    return [
        re.sub(r"\$\w+", ".*", target["expr"])
        for panel in board["panels"]
        for target in panel["targets"]
    ]


@pytest.fixture(scope="module")
def scraped(deployment):
    """The names of all metrics, after both replicas have received requests and been scraped."""
    with steady_load(deployment):
        deadline = time.monotonic() + 60
        while sum(float(one["value"][1]) for one in deployment.query('up{job="serving"}')) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        time.sleep(16)  # rates need three scrapes
        return {one["metric"]["__name__"] for one in deployment.query('{job="serving"}')}


def test_metrics_of_rules_and_panels_are_served(scraped):
    wanted = set(METRIC.findall((RULES / "alerts.yml").read_text() + "".join(expressions())))
    assert len(wanted) >= 6
    missing = {name for name in wanted - scraped if EMBEDDED or name.startswith(":")}
    # No model of the deployment has a shadow.
    assert {name for name in missing if not name.startswith("gru_serve:shadow_")} == set()


def test_every_panel_shows_something(deployment, scraped):
    for expression in expressions():
        if EMBEDDED or "gru_serve" not in expression:
            found = deployment.query(expression)
            assert found, expression
            assert any(one["value"][1] != "NaN" for one in found), expression


def test_rules_are_evaluated(deployment, scraped):
    import httpx

    answer = httpx.get(f"{deployment.prometheus}/api/v1/rules", trust_env=False).json()
    rules = [rule for group in answer["data"]["groups"] for rule in group["rules"]]
    assert len(rules) >= 8
    assert [(rule["name"], rule["health"]) for rule in rules if rule["health"] != "ok"] == []


@pytest.mark.parametrize(
    "check",
    [
        ("check", "config", "/etc/prometheus/prometheus.yml"),
        ("check", "rules", "/etc/prometheus/alerts.yml"),
        ("test", "rules", "/etc/prometheus/alerts_test.yml"),
    ],
    ids=["config", "rules", "tests"],
)
def test_promtool(docker, images, check):
    volume = f"--volume={RULES}:/etc/prometheus:ro"
    docker("run", "--rm", volume, "--entrypoint=/bin/promtool", images["prometheus"], *check)
