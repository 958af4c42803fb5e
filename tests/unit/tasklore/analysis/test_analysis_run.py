"""`tasklore analyses run` over a story's folder, with an API whose answers the test chooses."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.analyses import follow
from tasklore.commands.analyses.documents import document_in
from tasklore.commands.analyses.run import AnalysisOptions, run_analysis
from tasklore.commands.exits import FAILED, OK, UNREACHABLE, USAGE, Interrupted
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import AnswerCut
from tasklore.contracts.analysis.document import read_document
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import StoryResponse
from tasklore.contracts.errors import Unreachable

STORY = "quay"
EXAMPLE = Path(__file__).parent / "example.json"
BODY = json.loads(EXAMPLE.read_text("utf-8"))
VIEW = dict[str, Any]


def analysed(number: int, *sections: str, **changed: Any) -> dict[str, Any]:
    """Return the example as the analysis of response *number*, only *sections* of it when any are named."""
    kept = {
        group: {
            name: one
            for name, one in BODY[group].items()
            if not sections or name in sections
        }
        for group in ("background", "immediate")
    }
    for section, body in changed.items():
        group = next(group for group in kept if section in BODY[group])
        kept[group][section] = body
    counts = {
        "agents_run": 10,
        "agents_ok": 10 - len(changed),
        "agents_fail": len(changed),
    }
    return {**BODY, "meta": {**BODY["meta"], "resp_num": number, **counts}, **kept}


def view_of(number: int, document: Any, *awaited: str, **told: Any) -> VIEW:
    """Return the view of an analysis whose sections *awaited* are at work."""
    sections = [
        {
            "section": seat.section,
            "group": seat.group,
            "agent_id": seat.agent_id,
            "state": "asked" if seat.section in awaited else "ok",
        }
        for seat in SECTION_AGENTS
        if seat.section != "contradiction"
    ]
    return {
        "story_id": STORY,
        "response": number,
        "state": "running" if awaited else "done",
        "served": False,
        "sections": sections,
        "without_worker": [],
        "document": document,
        **told,
    }


EVERY = [seat.section for seat in SECTION_AGENTS if seat.section != "contradiction"]
Answer = Callable[[str, int], VIEW]


class Api:
    """Stands for the API: keeps what it was asked, and answers `run` and `show` with what *answer* returns."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []
        self.answer: Answer = lambda _, number: view_of(number, analysed(number))

    def answer_for(self, api: LocalApi) -> Callable[..., VIEW]:
        return partial(self._ask, api.noun)

    def _ask(self, noun: str, verb: str, **values: Any) -> VIEW:
        self.asked.append((noun, verb, values))
        if noun == "stories":
            return {}
        return self.answer(verb, values["response"])

    def asked_for(self, verb: str) -> list[Mapping[str, Any]]:
        return [values for _, one, values in self.asked if one == verb]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    one = Api()
    monkeypatch.setattr(LocalApi, "ask", property(one.answer_for))
    monkeypatch.setattr(follow, "LOOK_S", 0.001)
    return one


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a story with three responses."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "quay"
    (folder / "responses").mkdir(parents=True)
    (folder / "entities").mkdir()
    (folder / "story.toml").write_text(
        f'story_id = "{STORY}"\ntitle = "The Quay"\n', "utf-8"
    )
    (folder / "entities" / "anna.md").write_text(
        "# Anna Lind\n\nKeeps the quay.\n", "utf-8"
    )
    for number in (1, 2, 3):
        file = folder / "responses" / f"Ch{1 + number // 3}-R{number:03}.md"
        file.write_text(
            f'Anna Lind counted {number} ropes. "All here," she said.\n', "utf-8"
        )
    return folder


def test_the_last_response_is_analysed_and_shown_with_its_context(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    options = AnalysisOptions(folder=place, until="immediate", wait_s=7, refresh=True)
    assert run_analysis(options) == OK
    (_, loading, story), (_, running, request) = api.asked
    assert (loading, running) == ("load", "run")
    assert story["settings"]["title"] == "The Quay"
    assert request == {
        "story_id": STORY,
        "response": 3,
        "chapter": 2,
        "text": (place / "responses" / "Ch2-R003.md").read_text("utf-8"),
        "until": "immediate",
        "refresh": True,
        "wait_seconds": 0,
    }
    out, _ = capsys.readouterr()
    assert out.startswith("Ch2-R3, fresh: 10 of 10 agents ok, in ")
    assert (
        "fact_extract          2,341  10 facts of 2 names; 4,000 -> 110 tokens\n" in out
    )
    assert "24,200 tokens became 1,515, 94 % less.\n" in out
    assert "of 350 tokens:\n\n<!-- AGENT CONTEXT -->\n" in out
    assert out.endswith("<!-- END AGENT CONTEXT -->\n")
    written = (place / "state" / "agent_analysis.json").read_bytes()
    assert read_document(written) == read_document(analysed(3))


RESPONSE = StoryResponse(number=3, text="x")


def test_sections_are_shown_while_others_are_still_running(api: Api) -> None:
    views: Iterator[VIEW] = iter(
        [
            view_of(3, None, *EVERY),
            view_of(3, analysed(3, "knowledge"), *EVERY[:2]),
            view_of(3, analysed(3)),
        ]
    )
    api.answer = lambda _verb, _number: next(views)
    seen: list[tuple[str, ...]] = []
    done = follow.analyse(
        STORY, RESPONSE, lambda view: seen.append(follow.awaited_in(view))
    )
    assert seen == [tuple(EVERY), tuple(EVERY[:2]), ()]
    assert (done.is_whole, done.awaited, done.document) == (
        True,
        (),
        document_in(view_of(3, analysed(3))),
    )
    assert [verb for _, verb, _ in api.asked] == ["run", "show", "show"]


def test_what_the_next_response_needs_is_not_kept_back_by_the_others(api: Api) -> None:
    background = [seat.section for seat in SECTION_AGENTS if seat.group == "background"]
    api.answer = lambda _verb, number: view_of(number, analysed(3), background[0])
    done = follow.analyse(STORY, RESPONSE, lambda _view: None, until="immediate")
    assert (done.is_done, done.awaited) == (True, (background[0],))
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    "away",
    [
        Unreachable("no API answers"),
        ApiRefused("the store is away", UNREACHABLE, {"status": 503}),
        AnswerCut("the connection was closed without an answer"),
    ],
)
def test_an_api_that_is_away_for_a_moment_is_asked_again(
    away: Exception, api: Api
) -> None:
    """For the beginning and for each look; a supervisor that died has a successor."""
    answers: Iterator[VIEW | Exception] = iter(
        [away, view_of(3, None, *EVERY), away, away, view_of(3, analysed(3))]
    )

    def answer(_verb: str, _number: int) -> VIEW:
        one = next(answers)
        if isinstance(one, Exception):
            raise one
        return one

    api.answer = answer
    assert follow.analyse(STORY, RESPONSE, lambda _view: None).is_whole
    verbs = [verb for _, verb, _ in api.asked]
    assert verbs == ["run", "run", "show", "show", "show"]


def test_an_api_that_stays_away_and_one_that_refuses_end_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "AWAY_S", 0.0)

    def refuse(_verb: str, _number: int) -> VIEW:
        raise Unreachable("no API answers")

    api.answer = refuse
    with pytest.raises(Unreachable):
        follow.analyse(STORY, RESPONSE, lambda _view: None)
    assert len(api.asked) == 1


def test_agents_without_a_worker_are_said_once(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = 0

    def answer(_verb: str, number: int) -> VIEW:
        nonlocal looks
        looks += 1
        awaited = EVERY[:1] if looks < 9 else ()
        away = [SECTION_AGENTS[0].agent_id] if awaited else []
        return view_of(number, analysed(3), *awaited, without_worker=away)

    api.answer = answer
    assert follow.analyse(STORY, RESPONSE, lambda _view: None).is_done
    told = capsys.readouterr().err
    assert told == (
        f"tasklore: no worker of {SECTION_AGENTS[0].agent_id} is alive; what it finds waits until one is: "
        "`tasklore worker tasklore.workers.agents.story`\n"
    )


def test_a_failed_agent_is_shown_with_its_reason_beside_the_other_sections(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"dur": 5, "status": "failed", "error": "KeyError: 'x'"}
    document = analysed(3, knowledge=failed, thread_extract={"status": "late"})
    api.answer = lambda _, number: view_of(number, document)
    assert run_analysis(AnalysisOptions(folder=place)) == FAILED
    out, _ = capsys.readouterr()
    assert "8 of 10 agents ok, 2 failed" in out
    assert "failed: KeyError: 'x'\n" in out
    assert "late: it did not answer in time\n" in out
    assert "Marcus \u2194 Lily +10 (now 28, Acquaintance)" in out


@pytest.mark.parametrize("has_any", [True, False])
def test_after_the_time_to_wait_the_sections_so_far_are_shown(
    has_any: bool, place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    document = analysed(3, "knowledge") if has_any else None
    awaited = [one for one in EVERY if not has_any or one != "knowledge"]
    api.answer = lambda _, number: view_of(number, document, *awaited)
    assert run_analysis(AnalysisOptions(folder=place, wait_s=0.01)) == FAILED
    out, err = capsys.readouterr()
    assert ("3 facts; Coffee Corner Cafe" in out) is has_any
    assert ("0 of 9 agents ok, 9 at work" in out) is not has_any
    assert (place / "state" / "agent_analysis.json").exists() is has_any
    assert (
        "not finished after 0.01 s; the agents continue, and `tasklore analyses show quay --response 3`"
        in err
    )


def test_the_document_of_a_later_response_is_not_overwritten(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    state = place / "state" / "agent_analysis.json"
    earlier = AnalysisOptions(folder=place, files=(Path("Ch1-R002.md"),))
    assert run_analysis(AnalysisOptions(folder=place)) == run_analysis(earlier) == OK
    assert read_document(state.read_bytes()).meta.response_number == 3
    assert (
        capsys.readouterr().err
        == f"tasklore: {state} stays: it is of response 3, a later one\n"
    )
    state.write_text("{}")
    assert run_analysis(earlier) == OK
    assert read_document(state.read_bytes()).meta.response_number == 2


class ClosedPipe(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_the_document_is_written_before_anything_is_printed(
    place: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    with pytest.raises(Interrupted, match="ended by signal 13"):
        run_analysis(AnalysisOptions(folder=place))
    written = read_document((place / "state" / "agent_analysis.json").read_bytes())
    assert written.meta.response_number == 3
    assert api.asked_for("run")


def test_a_link_out_of_the_folder_is_not_sent(
    place: Path, api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("secret")
    (place / "responses" / "Ch2-R004.md").symlink_to(tmp_path / "secret")
    for options in (
        AnalysisOptions(folder=place),
        AnalysisOptions(folder=place, everything=True),
        AnalysisOptions(folder=place, files=(Path("Ch2-R004.md"),)),
    ):
        assert run_analysis(options) == USAGE
        assert "it is a link out of the story's folder" in capsys.readouterr().err
    assert api.asked == []


def test_all_responses_are_analysed_in_order_one_line_each(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"status": "failed", "error": "KeyError: 'x'"}

    def answer(_verb: str, number: int) -> VIEW:
        changed = {"knowledge": failed} if number >= 2 else {}
        return view_of(number, analysed(number, **changed), served=number == 1)

    api.answer = answer
    assert run_analysis(AnalysisOptions(folder=place, everything=True)) == FAILED
    assert [one["response"] for one in api.asked_for("run")] == [1, 2, 3]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Ch1-R1  whole       10 of 10 ok    served  ")
    assert lines[1].startswith("Ch1-R2  partial      9 of 10 ok  ")
    assert lines[2] == "  knowledge failed: KeyError: 'x'"
    assert lines[3].startswith("Ch2-R3  partial ")
    assert lines[5].startswith("3 responses in ")
    assert lines[5].endswith(", 28 sections, 2 missing, $0.0048.")
    assert lines[6].endswith(" tokens of context.")
    state = (place / "state" / "agent_analysis.json").read_bytes()
    assert read_document(state).meta.response_number == 3


def test_all_stop_at_the_first_response_without_an_answer(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(_verb: str, number: int) -> VIEW:
        if number == 1:
            return view_of(number, analysed(1))
        return view_of(number, None, *EVERY)

    api.answer = answer
    options = AnalysisOptions(folder=place, everything=True, as_json=True, wait_s=0.05)
    assert run_analysis(options) == FAILED
    assert [one["response"] for one in api.asked_for("run")] == [1, 2]
    out, err = capsys.readouterr()
    assert [one["document"] for one in json.loads(out)] == [analysed(1), None]
    assert "no result of Ch1-R2 within 0.05 s; those after it were not started" in err


def test_a_refusal_leaves_nothing_in_the_folder(place: Path, api: Api) -> None:
    def refuse(_verb: str, _number: int) -> VIEW:
        raise ApiRefused("no agent of a story is known", USAGE, {"status": 422})

    api.answer = refuse
    with pytest.raises(ApiRefused, match="no agent of a story is known"):
        run_analysis(AnalysisOptions(folder=place))
    assert not (place / "state").exists()


def test_json_is_the_view_of_the_api(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_analysis(AnalysisOptions(folder=place, as_json=True)) == OK
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (view_of(3, analysed(3)), "")


def test_a_folder_with_mistakes_is_refused_line_by_line(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "story.toml").write_text(
        'story_id = "quay"\ncritical_countdwn = 3\n', "utf-8"
    )
    assert run_analysis(AnalysisOptions(folder=place, as_json=True)) == USAGE
    out, err = capsys.readouterr()
    [problem] = json.loads(out)["problems"]
    assert "story.toml: critical_countdwn: is not known" in problem
    assert problem in err
    assert api.asked == []


def test_whoever_stops_it_hears_how_to_look_on(
    place: Path, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_verb: str, _number: int) -> VIEW:
        raise KeyboardInterrupt

    api.answer = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_analysis(AnalysisOptions(folder=place))
    assert capsys.readouterr().err == (
        "tasklore: the agents continue; `tasklore analyses show quay --response 3` shows what they found\n"
    )
