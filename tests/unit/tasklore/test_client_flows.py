"""The client's flows: what is sent again, under which id, and when it is given up."""

from typing import Any

import pytest

from tasklore.client import ApiError, NotDone, Unreachable
from tasklore.client.flows import Answer, Call, Flow, Pause, SystemFlows
from tasklore.client.memory import MemoryFlows

AWAY = Answer(0, {"detail": "http://127.0.0.1:1 does not answer"})
BUSY = Answer(
    503, {"type": "urn:tasklore:problem:busy", "detail": "busy"}, retry_after_s=7.0
)


def done(call: Call) -> Answer:
    if call.path.startswith("/v1/requests"):
        reply = {
            "request_id": "r",
            "conversation_id": "c",
            "kind": "answer",
            "text": "yes",
        }
        return Answer(200, {"request_id": "r", "state": "done", "reply": reply})
    return Answer(200, {"task_id": "t", "state": "done", "revisions": {}})


class Drive:
    """Drives a flow by *answers*, and by `done` once these are used up; keeps the calls and pauses."""

    def __init__(self, flow: Flow[Any], *answers: Answer) -> None:
        self.calls: list[Call] = []
        self.pauses: list[float] = []
        self.result: Any = None
        left = list(answers)
        answer = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                self.result = end.value
                return
            if isinstance(step, Pause):
                self.pauses.append(step.seconds)
                answer = None
            else:
                self.calls.append(step)
                answer = left.pop(0) if left else done(step)


@pytest.mark.parametrize(
    "flow",
    [
        SystemFlows().ask("how is my budget?"),
        SystemFlows().run("Budget", "analyze", {}),
        MemoryFlows("ana", "user").add("food.likes", "tea"),
        MemoryFlows("ana", "user").change("food.likes/1", value="tea"),
        MemoryFlows("ana", "user").delete("food.likes/1"),
        MemoryFlows("ana", "user").undo("p1"),
        MemoryFlows("ana", "user").forget(),
    ],
    ids=lambda flow: flow.__qualname__.rpartition(".")[2],
)
def test_an_unanswered_change_is_sent_again_under_one_id(flow: Flow[Any]) -> None:
    drive = Drive(flow, AWAY, BUSY)
    assert len(drive.calls) == 3
    assert len({call.key for call in drive.calls}) == 1
    assert drive.calls[0].key
    assert drive.pauses == [0.25, 7.0]


def test_two_calls_have_two_ids() -> None:
    keys = [
        Drive(SystemFlows().run("Budget", "analyze", {})).calls[0].key for _ in range(2)
    ]
    assert keys[0] != keys[1]


def test_an_absent_server_is_given_up_after_four_calls() -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        Drive(SystemFlows().run("Budget", "analyze", {}), *[AWAY] * 4)
    pauses = Drive(SystemFlows().run("Budget", "analyze", {}), *[AWAY] * 3).pauses
    assert pauses == [0.25, 0.5, 1.0]


def test_a_refusal_is_final() -> None:
    body = {
        "type": "urn:tasklore:problem:fields",
        "detail": "wrong",
        "problems": [{"where": "limit", "message": "no number"}],
    }
    with pytest.raises(ApiError, match="wrong; limit: no number") as refused:
        Drive(SystemFlows().run("Budget", "analyze", {}), Answer(422, body))
    assert (refused.value.status, refused.value.kind) == (422, "fields")


@pytest.mark.parametrize(
    "flow",
    [
        SystemFlows().ask("how is my budget?", within_s=0.0),
        SystemFlows().run("Budget", "analyze", {}, within_s=0.001),
    ],
    ids=["ask", "run"],
)
def test_waiting_ends_with_its_time(flow: Flow[Any]) -> None:
    going = Answer(202, {"request_id": "r", "task_id": "t", "state": "running"})
    with pytest.raises(NotDone, match="goes on"):
        Drive(flow, *[going] * 1_000)


def test_a_name_is_one_part_of_a_path() -> None:
    [call] = Drive(MemoryFlows("../ana/items?x#", "agent").undo("p1")).calls
    assert call.path == "/v1/memory/..%2Fana%2Fitems%3Fx%23/undo"
    assert call.params == {"scope": "agent"}
    [call] = Drive(MemoryFlows("ana", "user").delete("food/likes")).calls
    assert call.path == "/v1/memory/ana/items/food%2Flikes"


def test_a_list_of_tasks_goes_on_behind_pages_that_are_short() -> None:
    """As many as were asked for, or all there are; only what was given filters."""
    entry = {"task_id": "t1", "agent_id": "A", "task": "b", "state": "failed"}
    first = Answer(200, {"tasks": [entry | {"began_ms": 1}], "after": "9.1.A"})
    empty = Answer(200, {"tasks": [], "after": "8.1.A"})
    last = Answer(200, {"tasks": [entry | {"began_ms": 2}], "after": "7.1.A"})
    drive = Drive(SystemFlows().tasks(state="failed", limit=2), first, empty, last)
    assert [one.began_ms for one in drive.result] == [1, 2]
    assert [call.params for call in drive.calls] == [
        {"state": "failed", "after": "", "limit": 2},
        {"state": "failed", "after": "9.1.A", "limit": 1},
        {"state": "failed", "after": "8.1.A", "limit": 1},
    ]
    end = Answer(200, {"tasks": [], "after": None})
    assert Drive(SystemFlows().tasks(), end).result == []
