"""Network policies evaluated as Kubernetes does: every allowed pair of pods is held to a table."""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deploy.checks.problem import CheckProblem, Manifest, at, listed, mapped

HOME = "tasklore"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a connection: a pod of *namespace* with *labels*, or an *address* outside."""

    name: str
    namespace: str = HOME
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    address: str | None = None


def _ours(component: str, **more: str) -> End:
    return End(
        name=component,
        labels={
            "app.kubernetes.io/name": HOME,
            "app.kubernetes.io/component": component,
        }
        | more,
    )


def _elsewhere(
    namespace: str,
    labels: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> End:
    return End(
        name=namespace,
        namespace=namespace,
        labels=labels or {},
        namespace_labels={"kubernetes.io/metadata.name": namespace, **(more or {})},
    )


_MODELS = {"tasklore.dev/asks-models": "true"}
SUPERVISOR = _ours("supervisor", **_MODELS)
MEMORY = _ours("memory", **_MODELS)
WORKER = _ours("budget")
#: Nobody reaches its operations: they are on loopback, for `kubectl port-forward`.
OPERATIONS = _ours("operations")
BOOTSTRAP = _ours("bootstrap")
OURS = (SUPERVISOR, OPERATIONS, MEMORY, WORKER, BOOTSTRAP)
NATS = End(name="nats", labels={"app.kubernetes.io/name": "nats"})
VALKEY = End(name="valkey", labels={"app.kubernetes.io/name": "valkey"})
STRANGERS = (
    End(name="a stranger beside us", labels={"app": "stranger"}),
    End(
        name="a stranger called supervisor",
        labels={"app.kubernetes.io/component": "supervisor"},
    ),
)
DNS = _elsewhere("kube-system", {"k8s-app": "kube-dns"})
KEDA = _elsewhere("keda")
MONITORING = _elsewhere("monitoring")
OTHERS = _elsewhere("others")
CALLERS = _elsewhere("callers", more={"tasklore.dev/may-call-api": "true"})
MODEL = End(name="a language model", namespace="", address="198.51.100.7")
#: Nobody may be taken for one of ours because of a label alone, and nobody may look around in private networks.
IMPOSTORS = (
    End(
        name="a name server of others",
        namespace="others",
        labels={"k8s-app": "kube-dns"},
        namespace_labels={"kubernetes.io/metadata.name": "others"},
    ),
    _elsewhere("kube-system"),
    End(
        name="a pod of others with our labels",
        namespace="others",
        labels=NATS.labels,
        namespace_labels={"kubernetes.io/metadata.name": "others"},
    ),
)
PRIVATE = tuple(
    End(name=address, namespace="", address=address)
    for address in (
        "10.1.2.3",
        "100.64.1.2",
        "169.254.169.254",
        "172.16.1.2",
        "192.168.1.2",
    )
)

METADATA = PRIVATE[2]

#: Who must reach whom, at which port.
WANTED = [
    *((one, NATS, "TCP 4222") for one in OURS),
    *((one, VALKEY, "TCP 6379") for one in OURS),
    *(
        (one, DNS, port)
        for one in (*OURS, NATS, VALKEY, *STRANGERS)
        for port in ("TCP 53", "UDP 53")
    ),
    *((MONITORING, one, "TCP 9464") for one in OURS),
    *((one, NATS, "TCP 8222") for one in (KEDA, MONITORING)),
    *((one, MODEL, "TCP 443") for one in (SUPERVISOR, MEMORY)),
    (NATS, NATS, "TCP 6222"),
    (CALLERS, SUPERVISOR, "TCP 8080"),
]
_EVERYBODY = (
    *OURS,
    NATS,
    VALKEY,
    *STRANGERS,
    DNS,
    KEDA,
    MONITORING,
    OTHERS,
    CALLERS,
    MODEL,
    *IMPOSTORS,
    *PRIVATE,
)
_PORTS = (
    "UDP 53",
    "UDP 123",
    *(f"TCP {port}" for port in (53, 80, 443, 4222, 6222, 6379, 8080, 8222, 9464)),
)


def problems(manifests: Iterable[Manifest]) -> list[CheckProblem]:
    """Return every pair that is wanted and kept apart, or not wanted and let through, on either side.

    Both sides are held to the table, although one closed side would do: opening the other must not open the pair.
    """
    policies = [one for one in manifests if one.get("kind") == "NetworkPolicy"]
    wanted = {(id(source), id(target), port) for source, target, port in WANTED}
    found = []
    for own in (one for one in _EVERYBODY if one.namespace == HOME):
        for direction in ("Egress", "Ingress"):
            rules = _rules(policies, own, direction)
            for other in _EVERYBODY:
                fitting = _fitting(rules, other, direction)
                for port in _PORTS:
                    may = _has_port(fitting, port)
                    if may != (_pair(own, other, port, direction) in wanted):
                        reach = "reach" if direction == "Egress" else "be reached by"
                        what = f"{own.name} {'may' if may else 'cannot'} {reach} {other.name} at {port}"
                        found.append(
                            CheckProblem(
                                "network policies", what, "see k8s/base/network.yaml"
                            )
                        )
    return found


def _pair(own: End, other: End, port: str, direction: str) -> tuple[int, int, str]:
    return (
        (id(own), id(other), port)
        if direction == "Egress"
        else (id(other), id(own), port)
    )


def passes(
    policies: Iterable[Manifest], own: End, other: End, port: str, direction: str
) -> bool:
    """Tell whether *policies* let *own* reach *other* (`Egress`) or be reached by it (`Ingress`), as at `TCP 4222`."""
    return _has_port(_fitting(_rules(policies, own, direction), other, direction), port)


def _rules(policies: Iterable[Manifest], own: End, direction: str) -> list[object]:
    """Return the rules for *own*; an empty rule, which fits everything, when no policy chooses it."""
    choosing = [
        one for one in policies if _chooses(at(one, "spec", "podSelector"), own.labels)
    ]
    choosing = [one for one in choosing if _is_for(one, direction)]
    if own.namespace != HOME or not choosing:
        return [{}]
    return [rule for one in choosing for rule in listed(one, "spec", direction.lower())]


def _fitting(rules: Iterable[object], other: End, direction: str) -> list[object]:
    side = "to" if direction == "Egress" else "from"
    return [
        rule
        for rule in rules
        if not listed(rule, side)
        or any(_is_peer(peer, other) for peer in listed(rule, side))
    ]


def _is_for(policy: Manifest, direction: str) -> bool:
    """Return whether *policy* applies to *direction*: by its types, else inwards, and outwards when it has rules."""
    kinds = listed(policy, "spec", "policyTypes") or [
        "Ingress",
        *(["Egress"] if at(policy, "spec", "egress") else []),
    ]
    return direction in kinds


def _chooses(selector: object, labels: Mapping[str, str]) -> bool:
    wanted = mapped(selector, "matchLabels")
    return selector is not None and all(
        labels.get(key) == value for key, value in wanted.items()
    )


def _has_port(rules: Iterable[object], port: str) -> bool:
    protocol, _, number = port.partition(" ")
    for rule in rules:
        # TCP is what is meant where no protocol is named, and a port without a number is every one.
        ports = [
            (at(one, "protocol") or "TCP", at(one, "port"))
            for one in listed(rule, "ports")
        ]
        if not ports or any(
            one == protocol and where in (int(number), None) for one, where in ports
        ):
            return True
    return False


def _is_peer(peer: object, other: End) -> bool:
    if at(peer, "ipBlock") is not None:
        return other.address is not None and _in_block(
            mapped(peer, "ipBlock"), other.address
        )
    if other.address is not None:
        return False
    space = at(peer, "namespaceSelector")
    pods = at(peer, "podSelector")
    is_there = (
        _chooses(space, other.namespace_labels)
        if space is not None
        else other.namespace == HOME
    )
    return is_there and (pods is None or _chooses(pods, other.labels))


def _in_block(block: Mapping[str, object], address: str) -> bool:
    def holds(network: object) -> bool:
        return ipaddress.ip_address(address) in ipaddress.ip_network(str(network))

    return (
        "cidr" in block
        and holds(block["cidr"])
        and not any(map(holds, listed(block, "except")))
    )
