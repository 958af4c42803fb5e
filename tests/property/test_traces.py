"""Contexts of traces as strangers may send them: read exactly as W3C spells them, or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.traces import made_context, read_context, spelled_context

HEX = "0123456789abcdef"
HEADERS = st.dictionaries(
    st.sampled_from(["traceparent", "tracestate"]), st.text(max_size=80)
)


def near(length: int) -> st.SearchStrategy[str]:
    """Return digits as they should be, and almost."""
    return st.one_of(
        st.text(HEX, min_size=length, max_size=length),
        st.text(HEX + "gG-", max_size=length + 1),
    )


@given(HEADERS)
def test_whatever_is_in_the_headers_nothing_is_raised_and_nothing_breaks_a_header(
    headers: dict[str, str],
) -> None:
    found = read_context(headers)
    for value in found.headers.values() if found is not None else ():
        assert value.isascii()
        assert value.isprintable()


@given(st.tuples(near(2), near(32), near(16), near(2)))
def test_a_context_is_carried_on_as_it_came_or_not_at_all(
    parts: tuple[str, str, str, str],
) -> None:
    """Only four fields of hexadecimal digits in small letters, none of the ids zero, are one."""
    parent = "-".join(parts)
    version, trace, span, flags = parts
    is_one = (
        [len(part) for part in parts] == [2, 32, 16, 2]
        and set(trace + span + version + flags) <= set(HEX)
        and version != "ff"
        and bool(trace.strip("0") and span.strip("0"))
    )
    found = read_context({"traceparent": parent})
    assert (found is not None) == is_one
    if found is not None:
        assert found.headers == {"traceparent": parent}
        assert (found.trace_id, found.span_id, found.flags) == (
            trace,
            span,
            int(flags, 16),
        )


@given(
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.integers(0, 255),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=512),
)
def test_what_we_make_is_read_again(
    trace: int, span: int, flags: int, state: str
) -> None:
    """From headers, and as it is kept beside a row."""
    made = made_context(trace, span, flags, state)
    assert read_context(made.headers) == made
    assert spelled_context(str(made)) == made


@given(st.text())
def test_a_state_that_does_not_fit_is_left_behind(state: str) -> None:
    """The trace goes on without it."""
    made = made_context(1, 1, 1)
    found = read_context({**made.headers, "tracestate": state})
    assert found is not None
    assert found.parent == made.parent
    assert found.state in ("", state)
    assert len(found.state) <= 512


@given(
    st.sampled_from(["Traceparent", "TraceParent", "TRACEPARENT"]),
    st.sampled_from(["Tracestate", "tracestate"]),
)
def test_a_header_is_read_in_whatever_case_it_was_written(
    parent: str, state: str
) -> None:
    """W3C asks for that; NATS keeps the case, and Go's propagators write a capital letter."""
    made = made_context(1, 2, 1, "vendor=1")
    assert read_context({parent: made.parent, state: made.state}) == made
