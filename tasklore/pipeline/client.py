"""Asking the supervisor for something about pipelines, and hearing whether it takes it up."""

from collections.abc import Sequence

from nats.aio.client import Client
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import InvalidInput, InvalidPipeline, MessageTooLarge, Unreachable
from contracts.messages import PipelineReply, PipelineRequest
from tasklore.ask.call import Call
from tasklore.exits import USAGE
from tasklore.pipeline.lines import counted
from tasklore.places import current_supervisor
from tasklore.render.screen import complain, print_json, printable

#: Seconds for the reply: it takes a look at the catalogue and into Valkey, and a supervisor may have been replaced.
REPLY_S = 20.0
#: Seconds after which it is asked again, which starts nothing twice.
AGAIN_S = 4.0


async def ask(client: Client, request: PipelineRequest, supervisor_id: str | None = None) -> PipelineReply:
    """Return what *supervisor_id*, None is the one whom the environment names, says to *request*.

    Raises:
        InvalidPipeline: it refuses, for problems that each have a place and a cure.
        InvalidInput: it refuses.
        MessageTooLarge: the request does not fit into a message.
        Unreachable: nobody takes the request, or whoever took it fell silent.
    """
    body = request.model_dump_json(exclude_none=True).encode()
    if len(body) > subjects.MAX_BODY:
        raise MessageTooLarge(
            f"the pipeline with its inputs has {len(body):,} bytes, at most {subjects.MAX_BODY:,} are taken; "
            "keep what is large in files and give their paths as inputs"
        )
    subject = subjects.pipelines(supervisor_id or current_supervisor())
    reply = _read(await Call(client, subject, lambda: body).reply(REPLY_S, AGAIN_S))
    if reply.kind == "accepted":
        return reply
    if reply.problems:
        raise InvalidPipeline(reply.problems)
    raise InvalidInput(printable(reply.text) or "the supervisor refused, and did not say why; its log does")


def _read(body: bytes) -> PipelineReply:
    try:
        return PipelineReply.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error


def refuse_aloud(problems: Sequence[str], *, as_json: bool) -> int:
    """Print what is wrong, a line for each problem, and return the exit code."""
    if as_json:
        print_json({"problems": list(problems)})
    for problem in problems:
        complain(printable(problem))
    if len(problems) > 1:
        complain(f"{counted(len(problems), 'problem')}; nothing was run")
    return USAGE
