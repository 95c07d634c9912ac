"""Checks of the files in docker/ that need no Docker: compose, configs, rules, dashboard."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from gru_serving.config.files import read_model_config, read_text_proto
from gru_serving.protos.monitoring_config_pb2 import MonitoringConfig
from gru_serving.telemetry.metrics import Metrics, VersionMetrics

DOCKER = Path(__file__).resolve().parents[2] / "docker"
METRIC = re.compile(r"(?::tensorflow|gru_serve)[\w:]+")


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]


def test_only_the_gateway_is_published(services):
    published = {name: one["ports"] for name, one in services.items() if "ports" in one}
    (port,) = published.pop("gateway")
    assert not port.startswith("127.")
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_replicas_are_on_the_internal_network_alone(services):
    networks = yaml.safe_load((DOCKER / "compose.yaml").read_text())["networks"]
    assert networks["engine"]["internal"]
    for name in ("serving-1", "serving-2"):
        assert list(services[name]["networks"]) == ["engine"]


def test_every_service_is_hardened(services):
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["init"], name
    assert all(one["mem_limit"] for name, one in services.items() if name != "smoke")


def test_the_gateway_knows_the_replicas_addresses(services):
    hosts = dict(line.split(":", 1) for line in services["gateway"]["extra_hosts"])
    assert set(hosts) == {"serving-1", "serving-2"}
    for name, address in hosts.items():
        assert services[name]["networks"]["engine"]["ipv4_address"] == address
    config = (DOCKER / "gateway" / "nginx.conf").read_text()
    assert set(re.findall(r"server (serving-\d):850[01]", config)) == set(hosts)


def test_the_official_server_is_started_as_the_kit_says(services):
    from gru_serving.__main__ import COMMANDS
    from gru_serving.conformance.models import FLAGS, IMAGE, IN_CONTAINER

    official, kit = services["tensorflow-serving"], services["conformance"]
    config = f"--model_config_file={IN_CONTAINER}/container.config"
    assert official["command"] == [config, *(f"--{flag}" for flag in FLAGS)]
    assert official["image"] == f"${{TENSORFLOW_SERVING_IMAGE:-{IMAGE}}}"
    assert official["profiles"] == kit["profiles"] == ["conformance"]
    assert official["volumes"][0].endswith(f":{IN_CONTAINER}:ro")
    assert kit["entrypoint"][-1] in COMMANDS
    assert kit["command"][-1] == f"--models={IN_CONTAINER}"


def test_targets_exist(services):
    stages = set(re.findall(r"^FROM .* AS (\S+)$", (DOCKER / "Dockerfile").read_text(), re.M))
    targets = {one["build"]["target"] for one in services.values() if "build" in one}
    assert targets <= stages


def test_mounted_files_exist(services):
    sources = [
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
    ]
    for source in sources:
        assert source.startswith("${") or (DOCKER / source).exists(), source


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose reads the file")
def test_compose_accepts_the_file(tmp_path):
    for name in ("tls_certificate", "tls_key", "api_keys", "client.key"):
        (tmp_path / name).touch()
    command = ["docker-compose", f"--file={DOCKER / 'compose.yaml'}", "config", "--quiet"]
    environment = {"PATH": "/usr/bin:/bin", "SECRETS": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_reads_its_files():
    (model,) = read_model_config(str(DOCKER / "serving" / "models.config"), False)
    assert (model.name, str(model.base_path)) == ("sentiment", "/models/sentiment")
    monitoring = read_text_proto(str(DOCKER / "serving" / "monitoring.config"), MonitoringConfig())
    scraped = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    assert monitoring.prometheus_config.enable
    assert monitoring.prometheus_config.path == job["metrics_path"]


def test_the_entrypoints_flags_are_known():
    from gru_serving.config.flags import check, parse_flags

    text = (DOCKER / "Dockerfile").read_text()
    (entrypoint,) = re.findall(r'ENTRYPOINT (\["tensorflow_model_server".*?\])', text, re.S)
    _, *flags = json.loads(entrypoint.replace("\\\n", ""))
    parsed = parse_flags(flags)
    check(parsed)
    assert parsed.enable_batching
    assert "--enable_profiler=false" in flags  # on by default in the official server
    assert (parsed.port, parsed.rest_api_port) == (8500, 8501)


def expressions():
    board = json.loads((DOCKER / "grafana" / "dashboards" / "serving.json").read_text())
    for panel in board["panels"]:
        assert panel["datasource"]["uid"] == "prometheus"
        yield from (target["expr"] for target in panel["targets"])
    for group in yaml.safe_load((DOCKER / "prometheus" / "alerts.yml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def test_rules_and_panels_name_metrics_of_the_server():
    metrics = Metrics()
    VersionMetrics(metrics)
    served = {metric.name for metric in metrics.families()}
    named = {
        re.sub(r"_(bucket|sum|count)$", "", name) if name not in served else name
        for expression in expressions()
        for name in METRIC.findall(expression)
    }
    assert len(named) >= 6
    assert named <= served


def test_every_alert_is_documented_and_tested():
    groups = yaml.safe_load((DOCKER / "prometheus" / "alerts.yml").read_text())["groups"]
    guide = (DOCKER.parent / "docs/reference/gateway.md").read_text()
    tests = (DOCKER / "prometheus" / "alerts_test.yml").read_text()
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert len(alerts) >= 10
    for alert in alerts:
        assert f"| {alert} |" in guide
        assert re.search(rf"alertname: {alert}\n +exp_alerts", tests)


def test_the_dashboard_has_variables_for_model_version_and_instance():
    """Each panel follows those that its metrics have labels for."""
    board = json.loads((DOCKER / "grafana" / "dashboards" / "serving.json").read_text())
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert list(variables) == ["instance", "model", "version"]
    for one in variables.values():
        assert (one["type"], one["includeAll"], one["allValue"]) == ("query", True, ".*")
    ids, used = [], set()
    for panel in board["panels"]:
        ids.append(panel["id"])
        for target in panel["targets"]:
            found = set(re.findall(r"\$(\w+)", target["expr"]))
            assert found <= variables.keys()
            assert "instance" in found, target["expr"]
            used |= found
    assert used == variables.keys()
    assert len(ids) == len(set(ids))


def test_images_requirements(monkeypatch):
    """TensorFlow is the CPU build of the locked version; no other package is replaced."""
    import runpy

    monkeypatch.chdir(DOCKER.parent)
    requirements = runpy.run_path(str(DOCKER / "requirements.py"))["requirements"]
    intel, arm = requirements(["serve"], "x86_64"), requirements(["serve"], "aarch64")
    locked = re.search(r"^tensorflow==(\S+)", Path("requirements.lock").read_text(), re.M)[1]
    assert f"tensorflow-cpu=={locked}" in intel
    assert f"tensorflow=={locked}" in arm
    assert [a for a, b in zip(intel, arm, strict=True) if a != b] == [f"tensorflow-cpu=={locked}"]
    assert any(line.startswith("grpcio>=") for line in intel)


def test_images_constraints(monkeypatch):
    """All versions of the lock, as plain lines without hashes."""
    import runpy

    from packaging.requirements import Requirement

    monkeypatch.chdir(DOCKER.parent)
    constraints = runpy.run_path(str(DOCKER / "requirements.py"))["constraints"]()
    read = [Requirement(line) for line in constraints]
    assert all(str(one.specifier).startswith("==") for one in read)
    assert len(read) == len(re.findall(r"^\S+==", Path("requirements.lock").read_text(), re.M))


def test_every_package_of_the_lock_has_hashes():
    """pip then rejects every file that is not among these; and no index address is written down."""
    lock = (DOCKER.parent / "requirements.lock").read_text()
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", lock)[1:]
    assert len(entries) > 100
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry.splitlines()[0]
    assert "://" not in lock
