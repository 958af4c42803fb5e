"""The custom resources that we write, with the fields that we use and no others: a misspelt one is nobody's default.

Fields and values as KEDA 2.20 and the Prometheus operator 0.80 know them; their own schemas need a cluster.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic.alias_generators import to_camel

from contracts.faults import fault_of
from deploy.checks.finding import Manifest, Problem, at, name_of

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
#: A whole number as metadata of triggers spell it: quoted.
Digits = Annotated[str, Field(pattern=r"^\d+$")]
#: Minute, hour, day, month and day of the week.
_CRON = r"^[0-9*/,-]+( [0-9*/,-]+){4}$"
Switch = Literal["true", "false"]
Duration = Annotated[str, Field(pattern=r"^\d+(ms|s|m|h)$")]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class _Metadata(_Strict):
    name: Name
    namespace: Name
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Target(_Strict):
    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    name: Name


class _Fallback(_Strict):
    failure_threshold: Count
    replicas: Count
    behavior: Literal["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"] = "static"


class _Policy(_Strict):
    type: Literal["Pods", "Percent"]
    value: Annotated[int, Field(ge=1)]
    period_seconds: Annotated[int, Field(ge=1, le=1800)]


class _Direction(_Strict):
    stabilization_window_seconds: Annotated[int, Field(ge=0, le=3600)]
    select_policy: Literal["Max", "Min", "Disabled"]
    policies: Annotated[list[_Policy], Field(min_length=1)]


class _Behaviour(_Strict):
    scale_up: _Direction
    scale_down: _Direction


class _Autoscaler(_Strict):
    behavior: _Behaviour


class _Advanced(_Strict):
    horizontal_pod_autoscaler_config: _Autoscaler


class _JetStreamMetadata(_Strict):
    nats_server_monitoring_endpoint: Annotated[str, Field(pattern=r"^[a-z0-9.-]*headless[a-z0-9.-]*:\d+$")]
    account: Literal["TASKLORE"]
    stream: Annotated[str, Field(min_length=1)]
    consumer: Annotated[str, Field(min_length=1)]
    lag_threshold: Digits
    activation_lag_threshold: Literal["0"]
    use_https: Switch


class _JetStream(_Strict):
    type: Literal["nats-jetstream"]
    metric_type: Literal["AverageValue"]
    metadata: _JetStreamMetadata


class _SeriesMetadata(_Strict):
    server_address: Annotated[str, Field(pattern=r"^https?://")]
    query: Annotated[str, Field(min_length=1)]
    threshold: Digits
    activation_threshold: Literal["0"]
    #: A series that is missing is a fault: by default it would scale to zero whatever waits.
    ignore_null_values: Literal["false"]


class _Series(_Strict):
    type: Literal["prometheus"]
    metric_type: Literal["AverageValue"]
    metadata: _SeriesMetadata


class _WindowMetadata(_Strict):
    timezone: Literal["Etc/UTC"]
    start: Annotated[str, Field(pattern=_CRON)]
    end: Annotated[str, Field(pattern=_CRON)]
    desired_replicas: Digits


class _Window(_Strict):
    type: Literal["cron"]
    metric_type: Literal["AverageValue"]
    metadata: _WindowMetadata


def _kind_of(trigger: object) -> str:
    return str(at(trigger, "type"))


_Trigger = Annotated[
    Annotated[_JetStream, Tag("nats-jetstream")]
    | Annotated[_Series, Tag("prometheus")]
    | Annotated[_Window, Tag("cron")],
    Discriminator(_kind_of),
]


class _ScalerSpec(_Strict):
    scale_target_ref: _Target
    polling_interval: Annotated[int, Field(ge=1)]
    cooldown_period: Count
    min_replica_count: Count
    max_replica_count: Annotated[int, Field(ge=1)]
    fallback: _Fallback
    advanced: _Advanced
    triggers: Annotated[list[_Trigger], Field(min_length=1)]


class ScaledObject(_Strict):
    """What KEDA scales, and by what."""

    api_version: Literal["keda.sh/v1alpha1"]
    kind: Literal["ScaledObject"]
    metadata: _Metadata
    spec: _ScalerSpec


class _Selector(_Strict):
    match_labels: Annotated[dict[str, str], Field(min_length=1)]


class _Names(_Strict):
    match_names: Annotated[list[Name], Field(min_length=1)]


class _Endpoint(_Strict):
    port: str
    path: str
    interval: Duration
    scrape_timeout: Duration


class _MonitorSpec(_Strict):
    selector: _Selector
    namespace_selector: _Names
    pod_target_labels: list[str]
    pod_metrics_endpoints: Annotated[list[_Endpoint], Field(min_length=1)]
    sample_limit: Count


class PodMonitor(_Strict):
    """Which pods Prometheus scrapes, and where."""

    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PodMonitor"]
    metadata: _Metadata
    spec: _MonitorSpec


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)

    alert: str | None = None
    record: str | None = None
    expr: Annotated[str, Field(min_length=1)]
    for_: Annotated[Duration | None, Field(alias="for")] = None
    keep_firing_for: Duration | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Group(_Strict):
    name: Annotated[str, Field(min_length=1)]
    interval: Duration | None = None
    rules: Annotated[list[_Rule], Field(min_length=1)]


class _RulesSpec(_Strict):
    groups: list[_Group]


class PrometheusRule(_Strict):
    """The rules and alerts of Prometheus."""

    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PrometheusRule"]
    metadata: _Metadata
    spec: _RulesSpec


KINDS: dict[str, type[BaseModel]] = {
    "ScaledObject": ScaledObject,
    "PodMonitor": PodMonitor,
    "PrometheusRule": PrometheusRule,
}


def problems(manifests: Iterable[Manifest]) -> list[Problem]:
    """Return each field of a custom resource that is missing, unknown or of the wrong form."""
    found = []
    for manifest in manifests:
        kind = KINDS.get(str(manifest.get("kind")))
        try:
            if kind is not None:
                kind.model_validate(manifest)
        except ValidationError as error:
            faults = (fault_of(one, "it") for one in error.errors(include_url=False))
            found += [Problem(name_of(manifest), fault, "see deploy/checks/custom.py") for fault in faults]
    return found
