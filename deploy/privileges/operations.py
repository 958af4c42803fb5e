"""Everything that is done on NATS, each with the subjects that a user needs for it and no others."""

from dataclasses import dataclass

from tasklore.contracts import subjects
from tasklore.runtime.access import inbox_prefix

#: The streams that hold what somebody said or wants done, and those of the two buckets.
STREAMS = (
    subjects.LATER,
    subjects.WAITING,
    subjects.TASKS,
    subjects.REPORTS,
    subjects.TURNS,
    subjects.FACTS,
    subjects.MESSAGES,
    subjects.DEAD,
    subjects.OUTPUT,
)
BUCKETS = (
    subjects.bucket_stream(subjects.AGENTS_BUCKET),
    subjects.bucket_stream(subjects.WORKERS_BUCKET),
)

#: The reply subjects that the server gives to requests from other accounts.
ANSWERS = "_R_.>"
#: Where every account is told which user it is.
USER_INFO = "$SYS.REQ.USER.INFO"

_API = "$JS.API"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOperation:
    """One thing that a role does, by subjects with NATS wildcards.

    `publish` are those that it publishes to, `hear` those that others publish and it subscribes to, `serve` those that
    it is asked on; `inbox` is where it hears answers. `sign` are those of entries that it signs.
    """

    what: str
    publish: tuple[str, ...] = ()
    hear: tuple[str, ...] = ()
    serve: tuple[str, ...] = ()
    inbox: tuple[str, ...] = ()
    sign: tuple[str, ...] = ()


def says(what: str, *subject_patterns: str) -> RoleOperation:
    """Publish to each of *subject_patterns*."""
    return RoleOperation(what=what, publish=subject_patterns)


def hears(what: str, *subject_patterns: str) -> RoleOperation:
    """Subscribe to each of *subject_patterns*."""
    return RoleOperation(what=what, hear=subject_patterns)


def vouches(what: str, *subject_patterns: str) -> RoleOperation:
    """Sign entries that are stored elsewhere, so that their reader knows who took them."""
    return RoleOperation(what=what, sign=subject_patterns)


def hears_answers(role: str) -> RoleOperation:
    """Subscribe to the answers to requests of *role* alone."""
    return RoleOperation(what="hear answers", inbox=(f"{inbox_prefix(role)}.>",))


def answers(*subject_patterns: str) -> RoleOperation:
    """Answer requests on *subject_patterns* from other accounts: the server routes each answer to its requester."""
    return RoleOperation(
        what="answer requests", publish=(ANSWERS,), serve=subject_patterns
    )


def takes(stream: str, durable: str) -> RoleOperation:
    """Take from the consumer *durable* of *stream*, `*` for each: pull, renew, acknowledge, see that it is there."""
    return RoleOperation(
        what=f"take {stream} as {durable}",
        publish=(
            f"{_API}.CONSUMER.MSG.NEXT.{stream}.{durable}",
            f"{_API}.CONSUMER.INFO.{stream}.{durable}",
            f"$JS.ACK.{stream}.{durable}.>",
        ),
        hear=(
            subjects.stream_deleted(stream),
            subjects.consumer_deleted(stream, durable),
        ),
    )


def looks_into(*streams: str) -> RoleOperation:
    """Ask for counts and configuration of *streams*, and for the content of no message."""
    return says(
        "look into streams", *(f"{_API}.STREAM.INFO.{stream}" for stream in streams)
    )


def reads(*streams: str) -> RoleOperation:
    """Read any message of *streams* without taking it."""
    return says("read streams", *(f"{_API}.DIRECT.GET.{stream}" for stream in streams))


def reads_last(stream: str, subject: str) -> RoleOperation:
    """Read the last message of *stream* on *subject*, which may have wildcards, and no other."""
    return says(f"read {subject}", f"{_API}.DIRECT.GET.{stream}.{subject}")


def erases(*streams: str) -> RoleOperation:
    """Delete or overwrite messages of *streams*, and have their files turned over."""
    return says(
        "erase messages",
        *(f"{_API}.STREAM.MSG.DELETE.{stream}" for stream in streams),
        *(f"{_API}.STREAM.PURGE.{stream}" for stream in streams),
        *(f"{subjects.filler(stream)}.*" for stream in streams),
    )


def admits() -> RoleOperation:
    """Read the tasks that wait for their turn, and remove them there; see how many lie ready for any agent."""
    stream = subjects.WAITING
    return RoleOperation(
        what="admit tasks",
        publish=(
            subjects.WAITS_ANY,
            *(
                f"{_API}.{call}.{stream}"
                for call in ("DIRECT.GET", "STREAM.MSG.GET", "STREAM.PURGE")
            ),
            f"{_API}.CONSUMER.INFO.{subjects.TASKS}.*",
        ),
        hear=(subjects.WAITS_ANY,),
    )


def unschedules() -> RoleOperation:
    """Take the next run of a task that was cancelled out of LATER."""
    return says("unschedule runs", f"{_API}.STREAM.PURGE.{subjects.LATER}")


def provides() -> RoleOperation:
    """Make streams, buckets and consumers, and adjust them."""
    every = (*STREAMS, *BUCKETS)
    return says(
        "make streams and consumers",
        *(
            f"{_API}.STREAM.{call}.{stream}"
            for stream in every
            for call in ("INFO", "CREATE", "UPDATE")
        ),
        *(
            f"{_API}.CONSUMER.{call}.{stream}.*"
            for stream in STREAMS
            for call in ("INFO", "DURABLE.CREATE")
        ),
    )


def examines() -> RoleOperation:
    """Ask what `tasklore doctor` asks: the account, the server, who reads which stream."""
    lists = (f"{_API}.CONSUMER.LIST.{stream}" for stream in STREAMS)
    return says("examine", subjects.JETSTREAM_INFO, USER_INFO, *lists)


def announces(agent_id: str) -> RoleOperation:
    """Put the card of *agent_id* and the presence of its workers into their buckets, having looked what lies there."""
    agents = subjects.bucket_stream(subjects.AGENTS_BUCKET)
    workers = subjects.bucket_stream(subjects.WORKERS_BUCKET)
    card = f"$KV.{subjects.AGENTS_BUCKET}.{agent_id}"
    return says(
        f"announce {agent_id}",
        card,
        f"$KV.{subjects.WORKERS_BUCKET}.{agent_id}.*",
        f"{_API}.STREAM.INFO.{agents}",
        f"{_API}.STREAM.INFO.{workers}",
        f"{_API}.DIRECT.GET.{agents}.{card}",
        f"{_API}.DIRECT.GET.{workers}",
    )
