"""A ScaledObject of KEDA: from no pod to as many as are needed, quickly up and slowly down.

A trigger of kind nats-jetstream counts the messages waiting and under way at one durable consumer, and wants a pod for
every `lagThreshold` of them. The connection of the scaler has no credentials: network policies guard the
monitoring port.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasklore.commands.k8s.pods import Manifest, PodRole, metadata

#: Where the monitoring of NATS answers: the headless service, whose names are those of the servers.
NATS_MONITOR = "nats-headless.{namespace}.svc.cluster.local:8222"
#: The account that all of our NATS users share.
ACCOUNT = "TASKLORE"
#: Where the series are that the second trigger asks for.
PROMETHEUS = "http://prometheus-operated.monitoring.svc.cluster.local:9090"

#: Seconds between two looks at what waits, and from the last of it until the last pod may go.
POLL_S = 5
COOLDOWN_S = 120
#: Seconds of calm before a pod goes: less would start and stop pods with every wave.
CALM_S = 300


@dataclass(frozen=True, slots=True)
class ScaledConsumer:
    """A durable consumer, and how many of its messages one pod is meant to have."""

    stream: str
    durable: str
    a_pod: int


@dataclass(frozen=True, slots=True)
class ScaledSeries:
    """One number that Prometheus knows, and how much of it one pod is meant to have."""

    query: str
    a_pod: int


@dataclass(frozen=True, slots=True)
class ScalingWindow:
    """A time of day, or of each hour, in which there is a pod though nothing waits; both as cron has them, in UTC."""

    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Scale:
    """The bounds: *fewest* may be none. While NATS is silent, there are *blind* pods, or more if there were."""

    fewest: int = 0
    most: int = 10
    blind: int = 2


def scaled_object(
    role: PodRole,
    scale: Scale,
    consumers: Sequence[ScaledConsumer],
    series: Sequence[ScaledSeries] = (),
    windows: Sequence[ScalingWindow] = (),
) -> Manifest:
    """Return what scales the Deployment of *role*: one trigger a consumer, of which the largest counts."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata(role),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": role.full_name,
            },
            "pollingInterval": POLL_S,
            "cooldownPeriod": COOLDOWN_S,
            "minReplicaCount": scale.fewest,
            "maxReplicaCount": scale.most,
            "fallback": {
                "failureThreshold": 3,
                "replicas": scale.blind,
                "behavior": "currentReplicasIfHigher",
            },
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behaviour()}},
            "triggers": [
                *(_jetstream(role, one) for one in consumers),
                *map(_prometheus, series),
                *map(_cron, windows),
            ],
        },
    }


def _behaviour() -> Manifest:
    up = [
        {"type": "Percent", "value": 100, "periodSeconds": 15},
        {"type": "Pods", "value": 4, "periodSeconds": 15},
    ]
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": up,
        },
        "scaleDown": {
            "stabilizationWindowSeconds": CALM_S,
            "selectPolicy": "Min",
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
        },
    }


def _jetstream(role: PodRole, consumer: ScaledConsumer) -> Manifest:
    return {
        "type": "nats-jetstream",
        "metricType": "AverageValue",
        "metadata": {
            "natsServerMonitoringEndpoint": NATS_MONITOR.format(
                namespace=role.namespace
            ),
            "account": ACCOUNT,
            "stream": consumer.stream,
            "consumer": consumer.durable,
            "lagThreshold": str(consumer.a_pod),
            "activationLagThreshold": "0",
            "useHttps": "false",
        },
    }


def _prometheus(series: ScaledSeries) -> Manifest:
    """Return a second trigger; a series that is missing is a fault, or a dead target would scale to none."""
    return {
        "type": "prometheus",
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": PROMETHEUS,
            "query": series.query,
            "threshold": str(series.a_pod),
            "activationThreshold": "0",
            "ignoreNullValues": "false",
        },
    }


def _cron(window: ScalingWindow) -> Manifest:
    """Return a third kind: one pod within *window*, more when others wish for them."""
    return {
        "type": "cron",
        "metricType": "AverageValue",
        "metadata": {
            "timezone": "Etc/UTC",
            "start": window.start,
            "end": window.end,
            "desiredReplicas": "1",
        },
    }
