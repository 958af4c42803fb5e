"""Manifests on the page about deploying do what it says."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.checks.network import DNS, MODEL, NATS, PRIVATE, WORKER, End, passes
from deploy.checks.problem import at
from deploy.checks.runbooks import unlinked
from tests.unit.deploy.documents import ROOT, documents

PAGE = (ROOT / "docs" / "reference" / "deploy.md").read_text("utf-8")
#: The manifests on the page, by what they are called there.
SHOWN: dict[str, Any] = {
    at(one, "metadata", "name") or "kustomization": one
    for [one] in map(
        documents, re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    )
}


def base() -> dict[str, Any]:
    files = (ROOT / "k8s" / "base").glob("*.yaml")
    found = [one for file in files for one in documents(file.read_text("utf-8"))]
    return {f"{one['kind']} {at(one, 'metadata', 'name')}": one for one in found}


def matching(target: dict[str, str], manifests: dict[str, Any]) -> list[Any]:
    """Return what a patch of kustomize is for: kind and name are patterns."""
    pattern = f"({target['kind']}) ({target.get('name', '.*')})"
    return [one for key, one in manifests.items() if re.fullmatch(pattern, key)]


def patched() -> dict[str, Any]:
    """Return the base as the patches on the page leave it."""
    manifests = base()
    for entry in SHOWN["kustomization"]["patches"]:
        targets = matching(entry["target"], manifests)
        assert targets, entry["target"]
        for target in targets:
            for step in documents(entry["patch"])[0]:
                *parents, last = (
                    part.replace("~1", "/") for part in step["path"].split("/")[1:]
                )
                node = target
                for part in parents:
                    node = node[int(part)] if isinstance(node, list) else node[part]
                assert (last in node) == (step["op"] == "replace"), step
                node[last] = step["value"]
    return manifests


def elsewhere(namespace: str) -> End:
    return End(
        name=namespace,
        namespace=namespace,
        labels={},
        namespace_labels={"kubernetes.io/metadata.name": namespace},
    )


def test_the_patch_moves_scaler_and_prometheus() -> None:
    manifests = patched()
    policies = [one for one in manifests.values() if one["kind"] == "NetworkPolicy"]
    for namespace, may in (
        ("keda-system", True),
        ("observability", True),
        ("keda", False),
        ("monitoring", False),
    ):
        assert (
            passes(policies, NATS, elsewhere(namespace), "TCP 8222", "Ingress") is may
        )
    for namespace, may in (
        ("keda-system", False),
        ("observability", True),
        ("monitoring", False),
    ):
        assert (
            passes(policies, WORKER, elsewhere(namespace), "TCP 9464", "Ingress") is may
        )
    assert not re.search(
        r"\.monitoring\.svc|metadata\.name: (keda|monitoring)\n",
        yaml.safe_dump_all(manifests.values()),
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_the_overlay_of_the_page(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    mine = tmp_path / "k8s" / "overlays" / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(
        yaml.safe_dump(SHOWN["kustomization"]), "utf-8"
    )
    command = ["kubectl", "kustomize", str(mine)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
    built = {
        f"{one['kind']} {one['metadata']['name']}": one
        for one in documents(done.stdout)
    }
    wanted = patched()
    for entry in SHOWN["kustomization"]["patches"]:
        for target in matching(entry["target"], wanted):
            key = f"{target['kind']} {target['metadata']['name']}"
            if target["kind"] == "PodMonitor" or target["kind"] == "PrometheusRule":
                assert built[key]["metadata"]["labels"]["release"] == "metrics"
            else:
                assert (
                    built[key]["spec"].get("ingress"),
                    built[key]["spec"].get("triggers"),
                ) == (
                    target["spec"].get("ingress"),
                    target["spec"].get("triggers"),
                )


def test_the_policy_for_a_web_api_opens_it_to_one_worker() -> None:
    policies = [one for one in base().values() if one["kind"] == "NetworkPolicy"]
    greeter = End(
        name="greeter",
        labels={**WORKER.labels, "app.kubernetes.io/component": "greeter-agent"},
    )
    more = [*policies, SHOWN["greeter-agent-to-the-web"]]
    assert not passes(policies, greeter, MODEL, "TCP 443", "Egress")
    assert passes(more, greeter, MODEL, "TCP 443", "Egress")
    assert not passes(more, greeter, MODEL, "TCP 80", "Egress")
    assert not any(passes(more, greeter, one, "TCP 443", "Egress") for one in PRIVATE)
    assert not passes(more, WORKER, MODEL, "TCP 443", "Egress")


def test_the_policy_for_dns_opens_the_cache_of_the_node() -> None:
    policies = [one for one in base().values() if one["kind"] == "NetworkPolicy"]
    more = [*policies, SHOWN["names-from-the-node"]]
    cache = End(name="the cache", namespace="", address="169.254.20.10")
    pod = End(
        name="its pod",
        namespace="kube-system",
        labels={"k8s-app": "node-local-dns"},
        namespace_labels=DNS.namespace_labels,
    )
    for other in (cache, pod):
        assert not passes(policies, WORKER, other, "UDP 53", "Egress")
        assert passes(more, WORKER, other, "UDP 53", "Egress")
        assert not passes(more, WORKER, other, "TCP 443", "Egress")
    assert passes(more, WORKER, DNS, "UDP 53", "Egress")


def test_every_alert_has_the_address_of_its_runbook() -> None:
    (named,) = SHOWN["kustomization"]["components"]
    component = ROOT / "k8s" / named.removeprefix("../../")
    [told] = documents((component / "kustomization.yaml").read_text("utf-8"))
    (value,) = (
        one
        for file in told["resources"]
        for one in documents((component / file).read_text("utf-8"))
    )
    (change,) = told["replacements"]
    assert change["source"] == {
        "kind": value["kind"],
        "name": at(value, "metadata", "name"),
        "fieldPath": "data.address",
    }
    (target,) = change["targets"]
    assert target["options"] == {"delimiter": "/", "index": -1}

    rules = base()["PrometheusRule tasklore"]
    address = value["data"]["address"]
    assert list(unlinked([rules], "")) == []
    assert list(unlinked([rules], address)) != []
    for rule in (
        rule
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ):
        rule["annotations"]["runbook_url"] = (
            f"{address}/{rule['annotations']['runbook_url']}"
        )
    assert list(unlinked([rules], address)) == []
    assert [problem.place for problem in unlinked([rules, value], address)] == [
        "ConfigMap tasklore-runbooks"
    ]
