"""What manifests promise together: each Deployment has its account, budget and scaler, and its numbers fit."""

from collections.abc import Callable, Iterable, Sequence

from contracts import subjects
from contracts.identifiers import PARTITIONS
from deploy.checks.finding import Manifest, Problem, at, listed, mapped, name_of
from runtime.messaging.signatures import READERS

#: Everything that has to be there, by kind and name.
WANTED = {
    "Namespace": {"tasklore"},
    "Deployment": {"tasklore-supervisor", "tasklore-budget", "tasklore-memory"},
    "Job": {"tasklore-bootstrap"},
    "Service": {"tasklore-api"},
    "PodMonitor": {"tasklore"},
    "PrometheusRule": {"tasklore"},
}
#: The durable consumers that count what waits, by Deployment; their names are those that processes read.
CONSUMERS = {
    "tasklore-supervisor": {(subjects.REPORTS, "SupervisorAgent")}
    | {(subjects.MESSAGES, f"inbox-{number}") for number in range(PARTITIONS)},
    "tasklore-budget": {(subjects.TASKS, "BudgetTrackerAgent")},
    "tasklore-memory": {(subjects.TASKS, "MemoryAgent")}
    | {
        (stream, f"{stream.lower()}-{number}")
        for stream in (subjects.TURNS, subjects.FACTS)
        for number in range(PARTITIONS)
    },
}
#: What each pod is started with.
ARGUMENTS = {
    "tasklore-supervisor": ["supervisor"],
    "tasklore-budget": ["worker", "budget"],
    "tasklore-memory": ["worker", "switchboard", "memory"],
    "tasklore-bootstrap": ["bootstrap", "budget", "switchboard", "memory"],
}
#: The files that a process looks for in TASKLORE_SECRETS_DIR; without one it would show the servers nothing.
PROOFS = {"nats.nkey", "valkey.password", "ca.crt"}
#: Secrets that a cluster may do without.
OPTIONAL = {"tasklore-llm"}
#: Numbers of the second kind of trigger: what waits where no consumer counts it.
_BLIND = 'vector(0) unless on() (up{namespace="tasklore",pod=~"tasklore-memory-.+"} == 0)'
SERIES = {
    "tasklore-memory": {f"max(tasklore_{queue}_pending) or ({_BLIND})" for queue in ("turns", "facts")},
}
#: Who has a pod once in a while though nothing waits: without, nobody would sweep what has expired out of documents.
ROUNDS = {"tasklore-memory"}
#: Seconds by which a pod has to outlive the grace period of its tasks.
_LEAVE_S = 30
#: Seconds that whoever routes to a pod needs to notice that it is ending.
_UNROUTE_S = 5


def problems(manifests: Sequence[Manifest], *, is_production: bool) -> list[Problem]:
    """Return what is missing or does not fit, of everything that lies in one namespace."""
    found: list[Problem] = [*_missing(manifests)]
    for pod in _of(manifests, "Deployment", "Job"):
        found += _pod(pod, manifests)
    for deployment in _of(manifests, "Deployment"):
        found += _companions(deployment, manifests)
    for scaler in _of(manifests, "ScaledObject"):
        found += _triggers(scaler)
    found += [*_service(manifests), *_policies(manifests)]
    return [*found, *_production(manifests, is_production)]


def has_tls(manifests: Sequence[Manifest]) -> bool:
    """Tell whether the API of supervisors speaks TLS itself."""
    settings = mapped(_named(manifests, "ConfigMap", "tasklore-supervisor"), "data")
    return any(f"TASKLORE_API_TLS_{one}_FILE" in settings for one in ("CERT", "KEY"))


def unprepared(manifests: Sequence[Manifest]) -> list[Problem]:
    """Return each worker whose consumers no Job makes: it may not make them itself, and is never ready without."""
    made = {str(one) for job in _of(manifests, "Job") for one in _arguments(job)[1:]}
    needed = [(one, set(map(str, _arguments(one)[1:]))) for one in _of(manifests, "Deployment")]
    cure = "add it to a bootstrap job; see tasklore/k8s/workers.py"
    return [
        Problem(name_of(one), f"serves {', '.join(sorted(agents - made))}, for which no Job makes consumers", cure)
        for one, agents in needed
        if agents - made
    ]


def _arguments(owner: Manifest) -> list[object]:
    return listed(owner, "spec", "template", "spec", "containers", 0, "args")


def _of(manifests: Iterable[Manifest], *kinds: str) -> list[Manifest]:
    return [one for one in manifests if one.get("kind") in kinds]


def _named(manifests: Iterable[Manifest], kind: str, name: object) -> Manifest | None:
    return next((one for one in _of(manifests, kind) if at(one, "metadata", "name") == name), None)


def _missing(manifests: Sequence[Manifest]) -> Iterable[Problem]:
    for kind, names in WANTED.items():
        for name in sorted(names - {str(at(one, "metadata", "name")) for one in _of(manifests, kind)}):
            yield Problem(f"{kind} {name}", "is not there", "see k8s/base/kustomization.yaml")
    for one in manifests:
        if not at(one, "metadata", "name"):
            yield Problem(f"a {one.get('kind')}", "has no name", "give it metadata.name")
        if one.get("kind") != "Namespace" and at(one, "metadata", "namespace") != "tasklore":
            yield Problem(name_of(one), "is in no namespace, or another one", "give it metadata.namespace tasklore")


def _pod(owner: Manifest, manifests: Sequence[Manifest]) -> Iterable[Problem]:
    """Yield what a pod names that is not there, and a grace period that is too short for its tasks."""
    spec = at(owner, "spec", "template", "spec")
    name = at(owner, "metadata", "name")
    account = _named(manifests, "ServiceAccount", at(spec, "serviceAccountName"))
    config_name = at(spec, "containers", 0, "envFrom", 0, "configMapRef", "name")
    config = _named(manifests, "ConfigMap", config_name)
    if account is None or at(account, "metadata", "name") != name:
        yield Problem(name_of(owner), "has no ServiceAccount of its own", "see tasklore/k8s/pods.py")
    if config is None or config_name != name:
        yield Problem(name_of(owner), f"has no ConfigMap {name}", "see tasklore/k8s/pods.py")
        return
    settings = mapped(config, "data")
    has_api = "TASKLORE_API_PORT" in settings
    if ("TASKLORE_API_TLS_CERT_FILE" in settings) != ("TASKLORE_API_TLS_KEY_FILE" in settings):
        yield Problem(name_of(config), "has half of what TLS needs", "see k8s/components/api-tls")
    needed = float(str(settings.get("TASKLORE_GRACE_S", 0))) + _LEAVE_S + (_UNROUTE_S if has_api else 0)
    given = at(spec, "terminationGracePeriodSeconds")
    if not isinstance(given, int) or given < needed:
        yield Problem(name_of(owner), f"is killed after {given} s, its tasks need {needed:g}", "raise its grace period")
    yield from _secrets(owner, settings)
    if at(spec, "containers", 0, "args") != ARGUMENTS.get(str(name)):
        yield Problem(name_of(owner), f"is not started with {ARGUMENTS.get(str(name))}", "see deploy/manifests.py")
    ports = {str(at(port, "containerPort")) for port in listed(spec, "containers", 0, "ports")}
    if has_api and settings["TASKLORE_API_PORT"] not in ports:
        yield Problem(name_of(owner), "does not open the port of its API", "see tasklore/k8s/pods.py")
    unrouted = at(spec, "containers", 0, "lifecycle", "preStop", "sleep", "seconds")
    if has_api and (not isinstance(unrouted, int) or unrouted < _UNROUTE_S):
        yield Problem(name_of(owner), "ends while it is still routed to", "give it preStop.sleep.seconds")


def _secrets(owner: Manifest, settings: dict[str, object]) -> Iterable[Problem]:
    """Yield each file that the settings name and no secret brings, and secrets of other roles."""
    sources = listed(owner, "spec", "template", "spec", "volumes", 1, "projected", "sources")
    items = [(str(at(one, "secret", "name")), item) for one in sources for item in listed(one, "secret", "items")]
    files = {f"/run/secrets/tasklore/{at(item, 'path')}" for _, item in items if at(item, "key")}
    named = {variable: value for variable, value in settings.items() if variable.endswith("_FILE")}
    role = settings.get("TASKLORE_ROLE")
    needed = PROOFS | ({"publishers.json"} if role in READERS else set())
    for proof in sorted(needed - {str(at(item, "path")) for _, item in items if at(item, "key")}):
        yield Problem(name_of(owner), f"is given no {proof}", "add it to the volume")
    for variable, value in named.items():
        if value not in files:
            yield Problem(name_of(owner), f"{variable} names {value}, which no secret brings", "add it to the volume")
    own = {f"tasklore-nats-{role}", f"tasklore-valkey-{role}", "tasklore-llm", "tasklore-api", "tasklore-api-tls"}
    for source in sources:
        name, may_lack = at(source, "secret", "name"), at(source, "secret", "optional") is True
        if may_lack != (name in OPTIONAL):
            yield Problem(name_of(owner), f"may start without {name}, or may not", "a key for models is optional")
    for name in sorted({name for name, _ in items} - own):
        yield Problem(name_of(owner), f"is given {name}, the secret of another role", "take it out of the volume")
    if (str(role).startswith("worker-") or role == "memory") and settings.get("TASKLORE_RETRY_SCHEDULE_S") != "86400":
        yield Problem(
            name_of(owner), "would schedule in LATER, to which it has no right", "set TASKLORE_RETRY_SCHEDULE_S"
        )
    wanted = "auto" if role == "bootstrap" else "never"
    if settings.get("TASKLORE_PROVISION") != wanted:
        yield Problem(name_of(owner), f"must have TASKLORE_PROVISION={wanted}", "only the bootstrap job makes streams")


def _companions(deployment: Manifest, manifests: Sequence[Manifest]) -> Iterable[Problem]:
    name = at(deployment, "metadata", "name")
    labels = mapped(deployment, "spec", "template", "metadata", "labels")
    chosen = mapped(deployment, "spec", "selector", "matchLabels")

    def chooses(selector: object) -> bool:
        wanted = mapped(selector, "matchLabels")
        return wanted == chosen and set(wanted) == {"app.kubernetes.io/name", "app.kubernetes.io/component"}

    def fits(what: Callable[[Manifest], bool], kind: str) -> bool:
        return any(what(one) for one in _of(manifests, kind))

    if not chosen.items() <= labels.items() or not chooses({"matchLabels": chosen}):
        yield Problem(name_of(deployment), "does not choose its own pods and no others", "see tasklore/k8s/pods.py")
    if not fits(lambda one: chooses(at(one, "spec", "selector")), "PodDisruptionBudget"):
        yield Problem(name_of(deployment), "has no PodDisruptionBudget", "see tasklore/k8s/pods.py")
    if not fits(lambda one: at(one, "spec", "scaleTargetRef", "name") == name, "ScaledObject"):
        yield Problem(name_of(deployment), "has no ScaledObject", "see tasklore/k8s/scaling.py")
    for spread in listed(deployment, "spec", "template", "spec", "topologySpreadConstraints"):
        if not chooses(at(spread, "labelSelector")):
            yield Problem(name_of(deployment), "spreads other pods than its own", "see tasklore/k8s/pods.py")
    sources = listed(deployment, "spec", "template", "spec", "volumes", 1, "projected", "sources")
    items = [
        item
        for one in sources
        if at(one, "secret", "name") == "tasklore-llm"
        for item in listed(one, "secret", "items")
    ]
    has_key = any(at(item, "key") and at(item, "path") == "tasklore_llm_api_key" for item in items)
    if has_key != (labels.get("tasklore.dev/asks-models") == "true"):
        yield Problem(
            name_of(deployment), "has a key for models without the label, or the other way round", "give both"
        )


def _triggers(scaler: Manifest) -> Iterable[Problem]:
    name = str(at(scaler, "metadata", "name"))
    triggers = listed(scaler, "spec", "triggers")
    streams = [one for one in triggers if at(one, "type") == "nats-jetstream"]
    found = {(at(one, "metadata", "stream"), at(one, "metadata", "consumer")) for one in streams}
    for stream, durable in sorted(CONSUMERS.get(name, set()) - found):
        yield Problem(name_of(scaler), f"does not count {durable} of {stream}", "see tasklore/k8s/workers.py")
    queries = {at(one, "metadata", "query") for one in triggers if at(one, "type") == "prometheus"}
    if (name in ROUNDS) != any(at(one, "type") == "cron" for one in triggers):
        yield Problem(
            name_of(scaler), "has no round once in a while, or one for nothing", "see tasklore/k8s/workers.py"
        )
    for query in sorted(SERIES.get(name, set()) - queries):
        yield Problem(name_of(scaler), f"does not ask for {query}", "see tasklore/k8s/workers.py")


def _service(manifests: Sequence[Manifest]) -> Iterable[Problem]:
    service = _named(manifests, "Service", "tasklore-api")
    supervisor = _named(manifests, "Deployment", "tasklore-supervisor")
    if service is None or supervisor is None:
        return
    if mapped(service, "spec", "selector") != mapped(supervisor, "spec", "selector", "matchLabels"):
        yield Problem(name_of(service), "does not choose the supervisors", "give it their labels")
    ports = listed(supervisor, "spec", "template", "spec", "containers", 0, "ports")
    if at(service, "spec", "ports", 0, "targetPort") not in {at(port, "name") for port in ports}:
        yield Problem(name_of(service), "leads to a port that supervisors do not have", "name it api in both")
    served = at(service, "spec", "ports", 0, "port"), at(service, "spec", "ports", 0, "appProtocol")
    if served != ((443, "https") if has_tls(manifests) else (80, None)):
        yield Problem(name_of(service), f"is of port and protocol {served}", "see k8s/components/api-tls")


def _policies(manifests: Sequence[Manifest]) -> Iterable[Problem]:
    """Yield policies that leave it to Kubernetes' defaults which directions they are of."""
    deny = at(_named(manifests, "NetworkPolicy", "default-deny"), "spec")
    if deny != {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}:
        yield Problem(
            "NetworkPolicy default-deny", "does not deny everything to everybody", "see k8s/base/network.yaml"
        )
    for policy in _of(manifests, "NetworkPolicy"):
        kinds = {word for word, rules in (("Ingress", "ingress"), ("Egress", "egress")) if at(policy, "spec", rules)}
        if not listed(policy, "spec", "policyTypes") or not kinds <= set(
            map(str, listed(policy, "spec", "policyTypes"))
        ):
            yield Problem(name_of(policy), "does not say which directions it is of", "give it policyTypes")


def _production(manifests: Sequence[Manifest], is_production: bool) -> Iterable[Problem]:
    """Yield what survives no loss of a node though it should."""
    copies = "3" if is_production else "1"
    for config in _of(manifests, "ConfigMap"):
        if at(config, "data", "TASKLORE_REPLICAS") != copies:
            yield Problem(name_of(config), f"must keep {copies} copies of streams", "set TASKLORE_REPLICAS")
    supervisors = at(_named(manifests, "ScaledObject", "tasklore-supervisor"), "spec", "minReplicaCount")
    if is_production and (not isinstance(supervisors, int) or supervisors < 2):
        yield Problem("ScaledObject tasklore-supervisor", "may have fewer than two pods", "set minReplicaCount to 2")
    for scaler in _of(manifests, "ScaledObject"):
        fewest = at(scaler, "spec", "minReplicaCount")
        if at(scaler, "metadata", "name") != "tasklore-supervisor" and fewest != 0:
            yield Problem(name_of(scaler), f"keeps {fewest} pods while nothing waits", "set minReplicaCount to 0")
