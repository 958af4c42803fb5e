"""The wiring of the HTTP API in a supervisor's process; what serves it is imported only where it is served."""

from typing import TYPE_CHECKING

from memory.conversations.conversation import Conversations
from memory.documents.kinds import Kinds
from memory.ledger.requests import RequestRecords
from memory.sessions.pipeline_runs import PipelineRuns
from memory.sessions.session import SessionCache
from runtime.networks import networks_in
from supervisor.pipelines.requests import PipelineRequests
from supervisor.service import Service
from supervisor.services import Ground

if TYPE_CHECKING:
    from supervisor.http.server.server import HttpServer


def api_on(
    ground: Ground, service: Service, sessions: SessionCache, pipelines: PipelineRequests
) -> "HttpServer | None":
    """Return what serves the HTTP API, listening but not yet answering; None where it is switched off.

    Raises:
        ConfigurationError: the address cannot be listened on, or other machines reach it and there are no keys.
    """
    settings = ground.settings
    if settings.api_port is None:
        return None
    from supervisor.http.admission.addresses import Origins
    from supervisor.http.admission.limits import Limits
    from supervisor.http.admission.unknown_clients import Strangers
    from supervisor.http.parts import Parts
    from supervisor.http.requests.work import Work
    from supervisor.http.server.certificates import demand_tls
    from supervisor.http.server.server import HttpServer, demand_keys

    keys = demand_keys(settings.api_host, settings.api_keys_file)
    records = RequestRecords(ground.redis)
    parts = Parts(
        supervisor_id=settings.supervisor_id,
        client=ground.link.client,
        redis=ground.redis,
        catalogue=lambda: ground.cards.catalogue,
        service=service,
        dispatch=ground.dispatch,
        reports=ground.reports,
        canceller=ground.canceller,
        ledger=ground.ledger,
        conversations=Conversations(ground.redis),
        records=records,
        work=Work(service, records),
        pipelines=pipelines,
        runs=PipelineRuns(ground.redis),
        sessions=sessions,
        kinds=Kinds.load(*filter(None, [settings.kinds_dir])),
        keys=keys,
        limits=Limits(settings.api_body_max_bytes, settings.api_rate, settings.api_burst),
        strangers=Strangers(Origins(networks_in(settings.api_trusted_proxies)), rate=settings.api_unknown_rate),
        meter=ground.metrics,
        grace_s=settings.grace_s,
    )
    tls = demand_tls(settings.api_tls_cert_file, settings.api_tls_key_file)
    return HttpServer(parts, settings.api_host, settings.api_port, tls)
