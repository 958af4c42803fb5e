"""Traces without a recorder: incoming ones are carried on, none is invented, and nothing is imported."""

import subprocess
import sys

import pytest

from tasklore.contracts.errors import ConfigurationError, NotAccepted
from tasklore.contracts.traces import made_context
from tasklore.runtime import tracing
from tasklore.runtime.tracing import traced_letter

CONTEXT = made_context(7, 8, 1, "vendor=1")


def settled(_problem: NotAccepted | None) -> None:
    """Take note of nothing."""


def test_without_a_trace_no_header_is_invented() -> None:
    """A letter goes as its sender wrote it."""
    assert traced_letter("tasks.A.b", "t:1", None, settled) == (None, settled)
    with tracing.span("anything") as span:
        assert span.context is None
        assert traced_letter("tasks.A.b", "t:1", {"a": "b"}, settled) == (
            {"a": "b"},
            settled,
        )


@pytest.mark.parametrize(
    "subject",
    ["tasks.A.b", "reports.S.t.1", "turns.3.token", "facts.3.token", "messages.3.a.b"],
)
def test_what_somebody_goes_on_with_carries_the_context_that_came(subject: str) -> None:
    """As it was, with what other tracers want carried along."""
    with tracing.span("anything", parent=CONTEXT):
        headers, _ = traced_letter(subject, "id", {"a": "b"}, settled)
    assert headers == {
        "a": "b",
        "traceparent": CONTEXT.parent,
        "tracestate": "vendor=1",
    }
    assert tracing.current() is None


def test_a_letter_that_repeats_another_keeps_its_trace() -> None:
    with tracing.within(CONTEXT):
        assert traced_letter("tasks.A.b", "t:1", {"traceparent": "x"}, settled)[0] == {
            "traceparent": "x"
        }
        assert traced_letter("tasks.A.b", "t:1", {"Traceparent": "x"}, settled)[0] == {
            "Traceparent": "x"
        }
        assert traced_letter("dead.tasks.A.b", "d", None, settled)[0] is None


async def test_recording_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Instead of an import that fails somewhere."""
    from tasklore.runtime.tracing.exporting import recording

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError, match=r"tasklore\[tracing\]"):
        async with recording("tasklore-worker", "w", "1"):
            pass


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "127.0.0.1:4318/v1/traces"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
    ],
)
async def test_a_variable_that_cannot_be_used_is_named_at_the_start(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address without http:// would lose every span, and a number that cannot be end in a traceback."""
    pytest.importorskip("opentelemetry.sdk")
    from tasklore.runtime.tracing.exporting import recording

    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=r"OTEL_.*TASKLORE_TRACING=off"):
        async with recording("tasklore-worker", "w", "1"):
            pass


def test_a_process_that_records_nothing_imports_nothing_of_it() -> None:
    """Not even the API, which the HTTP framework of supervisors brings along."""
    code = (
        "import sys, tasklore.runtime.tracing; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
