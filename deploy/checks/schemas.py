"""The strict schemas of Kubernetes: of the newest release known offline, and of the oldest one that is meant."""

import tempfile
from pathlib import Path

from deploy.checks.overlays import BUILT, rendered_text
from deploy.checks.problem import CheckProblem
from deploy.checks.tools import run

#: The oldest has `sleep` before a pod ends, and `matchLabelKeys` in spreads.
VERSIONS = ("1.30", "1.37")


def problems() -> list[CheckProblem]:
    """Return violations of the schema of a release, in any overlay; custom resources are left out."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for overlay in BUILT:
            file = Path(folder, f"{overlay}.yaml")
            file.write_text(rendered_text(overlay), "utf-8")
            for version in VERSIONS:
                done = run(
                    "kubernetes-validate",
                    "--strict",
                    "--no-warn",
                    "--quiet",
                    "-k",
                    version,
                    file,
                )
                if done.returncode != 0:
                    words = (
                        (done.stdout + done.stderr).replace(str(file), overlay).strip()
                    )
                    found.append(
                        CheckProblem(
                            f"k8s/overlays/{overlay}",
                            f"Kubernetes {version}: {words}",
                            "correct the field",
                        )
                    )
    return found
