"""Golden files: every overlay as kustomize renders it; `python -m deploy.checks.golden` writes them anew.

They are the one specification of the manifests: the difference of a golden file is the review of a change in
`tasklore/k8s`, `deploy/manifests.py` or `k8s`.
"""

import difflib
import itertools
import sys

from deploy.checks.overlays import OVERLAYS, rendered_text
from deploy.checks.problem import CheckProblem, Manifest, at, listed, name_of
from deploy.checks.tools import ROOT
from tasklore.contracts import subjects

_FOLDER = ROOT / "deploy" / "golden"
#: Lines of a difference that are shown.
_SHOWN = 12


def problems() -> list[CheckProblem]:
    """Return each overlay whose rendering differs from its golden file."""
    found = []
    for overlay in OVERLAYS:
        file = _FOLDER / f"{overlay}.yaml"
        golden = file.read_text("utf-8").splitlines() if file.is_file() else []
        changes = difflib.unified_diff(
            golden,
            rendered_text(overlay).splitlines(),
            "golden",
            "rendered",
            "",
            "",
            1,
            "",
        )
        if lines := list(itertools.islice(changes, _SHOWN)):
            cure = "correct it, or review the difference and run python -m deploy.checks.golden"
            found.append(
                CheckProblem(
                    f"deploy/golden/{overlay}.yaml",
                    "differs:\n" + "\n".join(lines),
                    cure,
                )
            )
    return found


def counted(manifests: list[Manifest]) -> set[tuple[str, str]]:
    """Return the consumers, by stream and durable, that the scalers of *manifests* count."""
    triggers = [
        one for scaler in manifests for one in listed(scaler, "spec", "triggers")
    ]
    return {
        (str(at(one, "metadata", "stream")), str(at(one, "metadata", "consumer")))
        for one in triggers
        if at(one, "type") == "nats-jetstream"
    }


def unprepared(manifests: list[Manifest]) -> list[CheckProblem]:
    """Return each worker of *manifests* whose consumers no Job makes, and each consumer of no stream of ours."""
    jobs = [one for one in manifests if one.get("kind") == "Job"]
    bootstrapped = {str(agent) for job in jobs for agent in _arguments(job)[1:]}
    found = []
    for one in manifests:
        missing = (
            set(map(str, _arguments(one)[1:])) - bootstrapped
            if one.get("kind") == "Deployment" and _arguments(one)[:1] == ["worker"]
            else set()
        )
        if missing:
            what = (
                f"serves {', '.join(sorted(missing))}, for which no Job makes consumers"
            )
            found.append(
                CheckProblem(
                    name_of(one),
                    what,
                    "add it to a bootstrap job; see tasklore/commands/k8s/workers.py",
                )
            )
    streams = {
        subjects.TASKS,
        subjects.WAITING,
        subjects.REPORTS,
        subjects.TURNS,
        subjects.FACTS,
        subjects.MESSAGES,
    }
    for stream, durable in sorted(counted(manifests)):
        if stream not in streams:
            found.append(
                CheckProblem(
                    "ScaledObject",
                    f"counts {durable} of {stream}",
                    "name a stream of ours",
                )
            )
    return found


def _arguments(owner: Manifest) -> list[object]:
    return listed(owner, "spec", "template", "spec", "containers", 0, "args")


if __name__ == "__main__":
    _FOLDER.mkdir(exist_ok=True)
    for name in OVERLAYS:
        (_FOLDER / f"{name}.yaml").write_text(rendered_text(name), "utf-8")
    sys.stdout.write(f"wrote {', '.join(OVERLAYS)}\n")
