"""Refuse a release whose images are named by a tag alone: `python -m deploy.checks.release`.

A tag can be moved, a digest cannot. Only the registry knows a digest, so none is written here: a release appends
those of the images that were tried, and this check says where.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from deploy.checks.problem import CheckProblem
from deploy.checks.tools import ROOT

#: Where an image is named as one word.
_NAMED = ("deploy/Dockerfile", "deploy/compose.yaml")
_IMAGE = re.compile(r"^\s*(?:image:|ARG BASE_IMAGE=)\s*(\S+)", re.MULTILINE)
#: Where charts and overlays name it by parts; `digest` then says which.
_PARTS = (
    "k8s/values/nats.yaml",
    "k8s/values/valkey.yaml",
    "k8s/overlays/prod/kustomization.yaml",
)
_TAG = re.compile(r"^\s*(?:tag|newTag):\s*(\S+)", re.MULTILINE)
_CURE = "append @sha256:DIGEST (`digest:` instead of `newTag:` in a kustomization) of the image that was tried"


def problems(root: Path = ROOT) -> Iterator[CheckProblem]:
    """Yield every image below *root* that a tag alone names; an image that a variable names needs its digest there."""
    for names, pattern in ((_NAMED, _IMAGE), (_PARTS, _TAG)):
        for name in names:
            for image in pattern.findall((root / name).read_text("utf-8")):
                if "@sha256:" not in image:
                    yield CheckProblem(
                        name, f"names {image.strip(chr(34))} without a digest", _CURE
                    )


if __name__ == "__main__":
    found = list(problems())
    sys.stdout.write("".join(f"{one}\n" for one in found))
    sys.exit(1 if found else 0)
