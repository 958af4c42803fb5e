"""`python -m deploy.checks [NAME...]`: one line a check, and 1 when one failed; a check that cannot be made failed too.

Names choose among them; `--list` prints all.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from deploy import manifests
from deploy.checks import (
    compose,
    golden,
    monitoring,
    network,
    overlays,
    pins,
    runbooks,
    scanners,
    schemas,
    servers,
    values,
)
from deploy.checks.overlays import BUILT, OVERLAYS, problems_in
from deploy.checks.problem import CannotCheck, CheckProblem
from deploy.privileges import __main__ as privileges
from deploy.privileges.roles import Cast

#: Facts that no check sees without a cluster, an image registry or a container engine.
UNVERIFIED = (
    "admission of pods by an API server and their scheduling",
    "the loops of KEDA and of the horizontal pod autoscaler (its formula drives real workers in a test)",
    "that the network enforces its policies (what they come to is worked out here)",
    "volumes, and what the charts of NATS and Valkey make of their values (facts of safety in them are checked)",
    "fields of custom resources, such as those of KEDA and Prometheus: no schema of theirs is at hand",
    "what docker compose makes of the file when it runs",
    "certificates and secrets of a real deployment",
    "how Grafana shows the dashboards (every query of theirs is parsed)",
)


def _stale() -> list[CheckProblem]:
    found = [
        CheckProblem(f"k8s/base/{name}", "is stale", "run python -m deploy.manifests")
        for name in manifests.stale()
    ]
    rights = privileges.stale(Cast())
    return found + [
        CheckProblem(f"deploy/{path}", "is stale", "run python -m deploy.privileges")
        for path in rights
    ]


CHECKS: dict[str, tuple[str, Callable[[], list[CheckProblem]]]] = {
    "generated": ("manifests and rights are as their parts make them", _stale),
    "kustomize": ("all overlays build", overlays.problems),
    "schema": (
        f"strict schemas of Kubernetes {' and '.join(schemas.VERSIONS)}",
        schemas.problems,
    ),
    "golden": ("overlays are as they were reviewed", golden.problems),
    "bootstrap": (
        "a job makes the consumers of every worker",
        lambda: problems_in(BUILT, golden.unprepared),
    ),
    "network": (
        "who may reach whom, pair by pair",
        lambda: problems_in(OVERLAYS, network.problems),
    ),
    "checkov": (
        "checkov over the manifests of production, also with TLS, and the Dockerfile",
        scanners.checkov_problems,
    ),
    "dockerfile": ("hadolint over the Dockerfile", scanners.hadolint_problems),
    "pins": ("the image installs what was tested", pins.problems),
    "compose": ("the compose file, and its services confined", compose.problems),
    "monitoring": (
        "rules, alerts and dashboards ask for what is exported",
        monitoring.problems,
    ),
    "runbooks": ("alerts link to their runbooks, by one address", runbooks.problems),
    "dashboards": (
        "every query of the dashboards can be parsed",
        monitoring.dashboard_problems,
    ),
    "values": ("the charts' values keep data and confine servers", values.problems),
    "nats": ("nats-server reads its configuration", servers.nats_problems),
    "valkey": (
        "Valkey loads its users, and a dry run refuses what none may",
        servers.valkey_problems,
    ),
}
_AT_ONCE = 2


def main(arguments: Sequence[str]) -> int:
    """Make the checks that are named, or all of them, and tell of each."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.checks", description=__doc__
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(CHECKS)}; all of them by default",
    )
    parser.add_argument(
        "--list", action="store_true", help="tell which there are, and end"
    )
    given = parser.parse_args(arguments)
    if strangers := sorted(set(given.names) - set(CHECKS)):
        parser.error(
            f"no check is called {', '.join(strangers)}; there are {', '.join(CHECKS)}"
        )
    names = given.names or list(CHECKS)
    if given.list:
        sys.stdout.write("".join(f"{name:<12} {CHECKS[name][0]}\n" for name in names))
        return 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        failed = sum(not is_well for is_well in pool.map(_make, names))
    if not given.names:
        sys.stdout.write("".join(f"unverified   {what}\n" for what in UNVERIFIED))
    sys.stdout.write(f"{len(names) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _make(name: str) -> bool:
    about, check = CHECKS[name]
    began = time.monotonic()
    try:
        found = [str(problem) for problem in check()]
    except CannotCheck as error:
        found = [f"cannot be checked: {error}"]
    except (ValueError, OSError) as error:
        found = [f"cannot be checked: {type(error).__name__}: {error}"]
    took = time.monotonic() - began
    told = f"{'failed' if found else 'ok':<8} {name:<12} {about} ({took:.1f} s)\n"
    sys.stdout.write(told + "".join(f"         - {line}\n" for line in found))
    return not found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
