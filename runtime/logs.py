"""Logging: one structured event a fact, on stderr, never a person's text at info.

JSON lines when stderr is no terminal. What libraries say through `logging` comes out in the same form.
"""

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.typing import Processor

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "console", "json"]

#: Libraries that tell at info what is ours to tell, and at debug what people wrote.
_TALKATIVE = (
    "asyncio",
    "faststream",
    "httpcore",
    "httpx",
    "nats",
    "openai",
    "uvicorn.access",
)


def configure(
    level: Level = "info",
    format: Format = "auto",  # noqa: A002 - as the setting is called
    stream: TextIO | None = None,
) -> None:
    """Send all that is logged from now on to *stream* (None is stderr); may be called again.

    `auto` is `console` on a terminal and `json` elsewhere. Libraries are heard from warning on, at any *level*: what
    they say at debug holds prompts.
    """
    out = sys.stderr if stream is None else stream
    pretty = format == "console" or (format == "auto" and out.isatty())
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _shared_processors(pretty=pretty)
    structlog.configure(
        processors=[*shared, _renderer(pretty=pretty, colors=pretty and out.isatty())],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        # A cached logger would not notice that it was configured anew.
        cache_logger_on_first_use=False,
    )
    _route_libraries(
        out, number, shared, _renderer(pretty=pretty, colors=pretty and out.isatty())
    )


def bind_task(agent: str, task_id: str) -> None:
    """Add *agent* and *task_id* to every further event of this asyncio task, and of the functions it calls."""
    structlog.contextvars.bind_contextvars(agent=agent, task_id=task_id)


def _shared_processors(*, pretty: bool) -> list[Processor]:
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        structlog.processors.StackInfoRenderer(),
    ]
    # Plain tracebacks in both forms: the rich ones print local variables, which hold what people wrote.
    return processors if pretty else [*processors, structlog.processors.format_exc_info]


def _renderer(*, pretty: bool, colors: bool) -> Processor:
    if pretty:
        return structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback
        )
    return structlog.processors.JSONRenderer()


def _route_libraries(
    out: TextIO, number: int, shared: list[Processor], renderer: Processor
) -> None:
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in _TALKATIVE:
        library = logging.getLogger(name)
        library.setLevel(max(number, logging.WARNING))
        # FastStream brings a handler of its own as soon as it is imported, and would speak beside ours.
        library.handlers.clear()
        library.propagate = True
    logging.captureWarnings(capture=True)
