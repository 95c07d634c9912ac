"""The Kubernetes manifests, rendered by kustomize and checked against Kubernetes' own schemas."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

MANIFESTS = Path(__file__).resolve().parents[2] / "docker" / "kubernetes"
OVERLAYS = ("embedded", "tensorflow-serving")
KUBERNETES = ("1.31", "1.34", "1.37")
PLAIN = sorted(
    path
    for folder in ("base", "monitoring")
    for path in (MANIFESTS / folder).glob("*.yaml")
    if path.name not in ("kustomization.yaml", "deployment.yaml")  # incomplete without an overlay
)

kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl renders the overlays")


def rendered(overlay):
    done = subprocess.run(
        ["kubectl", "kustomize", MANIFESTS / "overlays" / overlay],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


def one(documents, kind, name="sentiment"):
    (found,) = (d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)
    return found


def validate(document, version):
    import kubernetes_validate

    kubernetes_validate.validate(document, version, strict=True)


@kubectl
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlays_fit_the_schemas(overlay, version):
    documents = rendered(overlay)
    assert {d["kind"] for d in documents} >= {
        *("Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "ConfigMap"),
        *("NetworkPolicy", "PersistentVolumeClaim", "Namespace"),
    }
    for document in documents:
        validate(document, version)


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.name)
def test_files_fit_the_schemas(path):
    for document in yaml.safe_load_all(path.read_text()):
        validate(document, KUBERNETES[-1])


def test_a_wrong_manifest_does_not_fit():
    import kubernetes_validate

    budget = yaml.safe_load((MANIFESTS / "base" / "disruption_budget.yaml").read_text())
    budget["spec"]["maxUnavailabel"] = budget["spec"].pop("maxUnavailable")
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(budget, KUBERNETES[-1])


@kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_references_hold(overlay):
    documents = rendered(overlay)
    deployment = one(documents, "Deployment")
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    for name in ("sentiment", "sentiment-grpc"):
        service = one(documents, "Service", name)["spec"]
        assert service["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["ports"]} <= ports
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = one(documents, kind)["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        assert selector["matchLabels"].items() <= labels.items()
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    policy = one(documents, "NetworkPolicy")["spec"]
    clients, monitoring = (rule["from"] for rule in policy["ingress"])
    assert [set(peer) for peer in clients] == [{"namespaceSelector", "podSelector"}]
    assert [set(peer) for peer in monitoring] == [{"namespaceSelector"}]
    one(documents, "ConfigMap", volumes["config"]["configMap"]["name"])
    one(documents, "PersistentVolumeClaim", volumes["models"]["persistentVolumeClaim"]["claimName"])
    target = one(documents, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        (handler,) = (v for k, v in container[probe].items() if k in ("httpGet", "tcpSocket"))
        assert handler["port"] in ports
    metric = one(documents, "HorizontalPodAutoscaler")["spec"]["metrics"][0]["pods"]["metric"]
    adapter = yaml.safe_load((MANIFESTS / "monitoring" / "prometheus_adapter.yaml").read_text())
    (rule,) = yaml.safe_load(adapter["data"]["config.yaml"])["rules"]
    assert rule["name"]["as"] == metric["name"]


@kubectl
def test_the_engine_wants_tokens():
    """Tokens come from a Secret that must exist, and the patch keeps the flags of the base."""
    from gru_serving.config.flags import check, parse_flags

    plain, tokens = (
        one(rendered(overlay), "Deployment")["spec"]["template"]["spec"]
        for overlay in ("tensorflow-serving", "embedded")
    )
    (base,), (container,) = plain["containers"], tokens["containers"]
    assert set(base["args"]) < set(container["args"])
    flags = parse_flags([*container["args"], "--model_base_path=/models"])
    check(flags)
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert Path(flags.auth_token_file).parent == Path(mounts["tokens"]["mountPath"])
    assert mounts["tokens"]["readOnly"]
    volumes = {volume["name"]: volume for volume in tokens["volumes"]}
    assert volumes["tokens"]["secret"] == {"secretName": "serving-tokens"}


@kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_restricted(overlay):
    """What the Pod Security Standard `restricted` requires, and a read-only root."""
    pod = one(rendered(overlay), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not context["allowPrivilegeEscalation"]
    assert context["readOnlyRootFilesystem"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not pod["automountServiceAccountToken"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


@kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_time_to_stop(overlay):
    """The pre-stop wait and the server's drain finish before Kubernetes kills the pod."""
    from gru_serving.config.flags import Flags

    pod = one(rendered(overlay), "Deployment")["spec"]["template"]["spec"]
    command = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    wait = int("".join(filter(str.isdigit, command[-1])))
    drain = Flags().drain_seconds if overlay == "embedded" else 0
    assert pod["terminationGracePeriodSeconds"] > wait + drain
