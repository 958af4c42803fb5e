"""Scanners of others: checkov over what a cluster would be given, checkov and hadolint over the Dockerfile."""

import json
import tempfile
from pathlib import Path

from deploy.checks.overlays import PRODUCTION, rendered_text
from deploy.checks.problem import CheckProblem, at, listed
from deploy.checks.tools import ROOT, run

#: Rules of checkov that do not hold here, and why.
SKIPPED = {
    "CKV_K8S_43": "the image is one's own build, and its digest is known only then: overlays say where to put it",
    "CKV_DOCKER_2": "what health is differs by role: Kubernetes has probes, and the compose file a check a service",
    "CKV_DOCKER_7": "the base is an argument, whose default has a version",
}
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def checkov_problems() -> list[CheckProblem]:
    """Return what checkov finds in manifests of production and in the Dockerfile, in one run: it starts slowly."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{overlay}.yaml") for overlay in sorted(PRODUCTION)]
        for file in files:
            file.write_text(rendered_text(file.stem), "utf-8")
        done = run(
            *("checkov", "--file"),
            *(*files, DOCKERFILE),
            *("--framework", "kubernetes", "dockerfile"),
            *(
                "--skip-check",
                ",".join(SKIPPED),
                "--skip-download",
                "--quiet",
                "--compact",
                "--output",
                "json",
            ),
        )
    try:
        said: object = json.loads(done.stdout)
    except ValueError:
        return [
            CheckProblem(
                "checkov",
                f"said no JSON: {(done.stderr or done.stdout).strip()[-300:]}",
                "look at it",
            )
        ]
    reports = {
        at(one, "check_type"): one
        for one in (said if isinstance(said, list) else [said])
    }
    cure = "see that it finds what it is given"
    found = [
        CheckProblem("checkov", f"looked at no {kind}", cure)
        for kind in ("kubernetes", "dockerfile")
        if not at(reports.get(kind), "summary", "passed")
    ]
    failed = [
        one
        for report in reports.values()
        for one in listed(report, "results", "failed_checks")
    ]
    cure = "mend it, or skip it with a reason"
    return found + [
        CheckProblem(
            str(at(one, "resource")),
            f"{at(one, 'check_id')} {at(one, 'check_name')}",
            cure,
        )
        for one in failed
    ]


def hadolint_problems() -> list[CheckProblem]:
    """Return what hadolint finds in the Dockerfile."""
    done = run("hadolint", "--format", "json", DOCKERFILE)
    lines = json.loads(done.stdout) if done.stdout.strip().startswith("[") else []
    found = [
        CheckProblem(
            f"deploy/Dockerfile:{one['line']}",
            f"{one['code']} {one['message']}",
            "correct it",
        )
        for one in lines
    ]
    if done.returncode != 0 and not found:
        found.append(
            CheckProblem(
                "deploy/Dockerfile", (done.stderr or done.stdout).strip(), "correct it"
            )
        )
    return found
