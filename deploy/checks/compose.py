"""The compose file: it is one, and every service in it is confined as its pod would be."""

from collections.abc import Mapping

import yaml

from deploy.checks.problem import CheckProblem, at, listed, mapped
from deploy.checks.tools import ROOT, run

FILE = ROOT / "deploy" / "compose.yaml"
#: What has to be there for anything to work, and who looks at it.
SERVICES = {
    *(
        "nats-0",
        "nats-1",
        "nats-2",
        "valkey",
        "bootstrap",
        "supervisor",
        "budget",
        "memory",
    ),
    *("prometheus", "alertmanager", "grafana"),
    *("bootstrap-decision", "decision"),
}
#: Those that are started only for who asks for their profile.
OPTIONAL = {"bootstrap-decision": "world", "decision": "world"}
_BOOTSTRAPS = {"bootstrap", "bootstrap-decision"}
_OURS = {*_BOOTSTRAPS, "supervisor", "budget", "memory", "decision"}
#: The files that a process looks for in TASKLORE_SECRETS_DIR; without one it would show the servers nothing.
_PROOFS = ("nats.nkey", "valkey.password", "ca.crt")
_CURE = "see deploy/compose.yaml"


def problems() -> list[CheckProblem]:
    """Return what compose itself refuses, and what a service lacks."""
    profiles = [
        word
        for profile in sorted(set(OPTIONAL.values()))
        for word in ("--profile", profile)
    ]
    done = run(
        "docker-compose",
        "--file",
        FILE,
        *profiles,
        "config",
        "--quiet",
        "--no-env-resolution",
    )
    if done.returncode != 0:
        return [CheckProblem("deploy/compose.yaml", done.stderr.strip(), "correct it")]
    stack = yaml.safe_load(FILE.read_text("utf-8"))
    return unconfined(stack) + _unmounted(stack)


def unconfined(stack: Mapping[str, object]) -> list[CheckProblem]:
    """Return what each service of *stack* lacks, and what its networks let through."""
    services = mapped(stack, "services")
    found = [
        CheckProblem(f"service {name}", "is not there", _CURE)
        for name in sorted(SERVICES - set(services))
    ]
    for name, service in services.items():
        wanted = _wanted(name, service)
        found += [
            CheckProblem(f"service {name}", f"must have {what}", _CURE)
            for what, holds in wanted.items()
            if not holds
        ]
    for network in ("stores", "watched"):
        if at(stack, "networks", network, "internal") is not True:
            found.append(
                CheckProblem(f"network {network}", "leads outside", "make it internal")
            )
    return found


def _unmounted(stack: Mapping[str, object]) -> list[CheckProblem]:
    """Return what services are given of this folder and is not there: a container engine would make a folder of it."""
    services = mapped(stack, "services")
    mounts = {
        str(one).partition(":")[0]: name
        for name, service in services.items()
        for one in listed(service, "volumes")
    }
    missing = {place: name for place, name in mounts.items() if place.startswith("./")}
    return [
        CheckProblem(
            f"service {name}",
            f"is given deploy/{place[2:]}, which is not there",
            "make it, or correct the path",
        )
        for place, name in missing.items()
        if not (FILE.parent / place).exists()
    ]


def _wanted(name: str, service: object) -> dict[str, bool]:
    ends = at(service, "healthcheck", "disable") is True
    wanted = {
        "read_only": at(service, "read_only") is True,
        "cap_drop: [ALL]": at(service, "cap_drop") == ["ALL"],
        "no-new-privileges": "no-new-privileges:true"
        in listed(service, "security_opt"),
        "a user that is not root": str(at(service, "user") or "0").partition(":")[0]
        != "0",
        "bounds of memory and processes": bool(at(service, "mem_limit"))
        and bool(at(service, "pids_limit")),
        "a health check": ends or bool(listed(service, "healthcheck", "test")),
        "ports on loopback alone": all(
            str(port).startswith("127.0.0.1:") for port in listed(service, "ports")
        ),
        "an image with a version": ":" in str(at(service, "image"))
        and not str(at(service, "image")).endswith(":latest"),
        "networks": bool(listed(service, "networks")),
        "a restart policy": bool(at(service, "restart")),
        "its profile, or none": listed(service, "profiles")
        == ([OPTIONAL[name]] if name in OPTIONAL else []),
    }
    if name in _OURS:
        settings = mapped(service, "environment")
        grace = int(str(settings.get("TASKLORE_GRACE_S", 0)))
        wanted |= {
            "TLS to NATS": str(settings.get("TASKLORE_NATS_URL")).startswith("tls://"),
            "TLS to Valkey": str(settings.get("TASKLORE_REDIS_URL")).startswith(
                "rediss://"
            ),
            "three copies of streams": settings.get("TASKLORE_REPLICAS") == "3",
            "no right to make streams": (settings.get("TASKLORE_PROVISION") == "never")
            != (name in _BOOTSTRAPS),
            "a role": bool(settings.get("TASKLORE_ROLE")),
            "a stop_grace_period above its own": _seconds(
                at(service, "stop_grace_period")
            )
            > grace,
            "servers before it, or their bootstrap": bool(
                mapped(service, "depends_on")
            ),
            "secrets as files": _has_files(service, settings),
        }
    return wanted


def _has_files(service: object, settings: Mapping[str, object]) -> bool:
    """Tell whether each file that *settings* name is one of the secrets, and none is said in the open."""
    targets = {
        f"/run/secrets/{at(secret, 'target')}" for secret in listed(service, "secrets")
    }
    named = {str(value) for key, value in settings.items() if key.endswith("_FILE")}
    named |= {f"/run/secrets/{proof}" for proof in _PROOFS}
    is_told = settings.get("TASKLORE_SECRETS_DIR") == "/run/secrets"
    return (
        is_told
        and named <= targets
        and not any(key.endswith(("PASSWORD", "API_KEY")) for key in settings)
    )


def _seconds(period: object) -> int:
    return int(str(period or "0s").removesuffix("s"))
