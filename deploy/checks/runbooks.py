"""Alerts link to their runbooks: with the component `runbooks` each by one address, without it by a path of ours."""

from collections.abc import Iterable, Iterator

import yaml

from deploy.checks.overlays import rendered
from deploy.checks.problem import CheckProblem, Manifest, at, listed, name_of
from deploy.checks.tools import ROOT

_COMPONENT = "k8s/components/runbooks"
_VALUE = "tasklore-runbooks"
_CURE = f"see {_COMPONENT}"


def problems() -> list[CheckProblem]:
    """Return each alert whose link leads nowhere, with the component and without it."""
    found = yaml.safe_load((ROOT / _COMPONENT / "address.yaml").read_text("utf-8"))
    address = str(at(found, "data", "address"))
    return [*unlinked(rendered("prod"), ""), *unlinked(rendered("linked"), address)]


def unlinked(manifests: Iterable[Manifest], address: str) -> Iterator[CheckProblem]:
    """Yield alerts of *manifests* that do not link to a runbook of ours at *address*, "" for none."""
    if address and (
        not address.startswith(("https://", "http://")) or address.endswith("/")
    ):
        yield CheckProblem(
            _COMPONENT,
            f"has the address {address!r}",
            "write one such as https://git.example/tasklore/blob/main",
        )
    rules = 0
    for manifest in manifests:
        if at(manifest, "metadata", "name") == _VALUE:
            yield CheckProblem(
                name_of(manifest), "reaches the cluster, which has no use for it", _CURE
            )
        if manifest.get("kind") == "PrometheusRule":
            rules += 1
            yield from _alerts(manifest, f"{address}/" if address else "")
    if not rules:
        yield CheckProblem(
            "PrometheusRule", "is not there", "see k8s/base/kustomization.yaml"
        )


def _alerts(manifest: Manifest, before: str) -> Iterator[CheckProblem]:
    for rule in (
        rule
        for group in listed(manifest, "spec", "groups")
        for rule in listed(group, "rules")
    ):
        if (name := at(rule, "alert")) is None:
            continue
        path = f"deploy/runbooks/{name}.md"
        link = at(rule, "annotations", "runbook_url")
        if link != before + path or not (ROOT / path).is_file():
            yield CheckProblem(
                f"alert {name}", f"links to {link}, not to {before}{path}", _CURE
            )
