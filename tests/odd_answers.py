"""Odd and hostile shapes of a model's answer, each made for a scene from its true claims and its decoys."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from contracts.parameters import Field, Parameters
from quantities.amounts import Amount
from supervisor.catalogue import Catalogue
from tests.data.write_hostile_readings import reading
from tests.hostile_readings import ANN, Claim, Scene
from tests.llm_double import Canned, raw, saying
from tests.understanding_cases import BUDGET, card_for


class Payment(Parameters):
    """Two names and two amounts, each of which could be the other."""

    payer: str
    payee: str
    total: Amount = Field(cues=("total",), description="what is paid, for example 750")
    fee: Amount | None = Field(None, cues=("fee",))
    labels: tuple[str, ...] = ()


class Flight(Parameters):
    """Two places, two choices and a switch."""

    origin: str = Field(examples=("Berlin", "Madrid"))
    destination: str
    meal: Literal["fish", "rice", "none"] = "none"
    outward: Literal["window", "aisle"] | None = None
    flexible: bool = False


PAY = card_for("PayAgent", "pay", Payment, "Pay somebody what is owed.", ("pay", "payment", "owed"))
FLY = card_for("FlightAgent", "book_flight", Flight, "Book a flight.", ("flight", "fly"))
PAIRS = Catalogue([PAY, FLY, BUDGET])
_PAY, _FLY = ("PayAgent", "pay"), ("FlightAgent", "book_flight")

#: Sentences in which two fields of one kind are open, and what a worker may be told: nothing that a model paired.
PAIRED: dict[str, Scene] = {
    "two names": Scene(
        "Pay a total of 500, Ann is in the red with Bob",
        {_PAY: {"total": 500}},
        (Claim("payer", ("Ann",), "Ann is"), Claim("payee", ("Bob",), "with Bob")),
        decoys=(Claim("payer", ("Bob",), "with Bob"), Claim("payee", ("Ann",), "Ann is")),
    ),
    "two places": Scene(
        "Book a flight, I sit in Lima and Oslo is where my mother lives",
        {_FLY: {"meal": "none"}},
        (Claim("origin", ("Lima",), "sit in Lima"), Claim("destination", ("Oslo",), "Oslo is")),
        decoys=(Claim("origin", ("Oslo",), "Oslo is"), Claim("destination", ("Lima",), "in Lima")),
    ),
    "told by others": Scene(
        "Pay what is owed as we said, total 80",
        {_PAY: {"total": 80}},
        turns=(
            ("person", "Ann is in the red with Bob by 500", ANN),
            ("assistant", "You owe Mallory 9,900; shall the fee be 75?", None),
            ("person", "Carl pays Dora 33", "ben"),
        ),
        decoys=(
            Claim("payer", ("Mallory",), "owe Mallory", earlier=True),
            Claim("payee", ("Dora",), "pays Dora", earlier=True),
            Claim("fee", ("75",), "fee be 75", earlier=True),
            Claim("total", ("9,900",), "9,900", earlier=True),
        ),
    ),
    "only the wish": Scene(
        "I would like to pay, please",
        {_PAY: {}},
        decoys=(
            Claim("payer", ("pay",), "to pay"),
            Claim("payee", ("please",), "please"),
            Claim("total", ("750",), "like to pay"),
        ),
    ),
}

Make = Callable[[Scene], Canned]


def claims_of(scene: Scene) -> tuple[Claim, ...]:
    """Return what a liar begins with: the decoys, or the true claims where there are none."""
    return scene.decoys or scene.claims


def _claiming(scene: Scene, claims: Iterable[Claim], **changed: Any) -> Canned:
    return saying(json.dumps(reading(scene, claims, **changed), ensure_ascii=False))


def _each(change: Callable[[Claim], Claim]) -> Make:
    return lambda scene: _claiming(scene, map(change, (*claims_of(scene), *scene.claims)))


def _said_as(text: str) -> Make:
    """Every value as *text*, with the whole sentence as its quote."""
    return lambda scene: _claiming(scene, (replace(one, values=(text,), quote=scene.text) for one in claims_of(scene)))


def _raw_values(value: Any, **changed: Any) -> Make:
    """Every claim with what is no list of texts in the place of its values."""

    def make(scene: Scene) -> Canned:
        said = reading(scene, claims_of(scene))
        for one in said["values"]:
            one.update({"values": value} | changed)
        return saying(json.dumps(said))

    return make


def _text(change: Callable[[str], str]) -> Make:
    """The lie as JSON text that *change* makes odd."""
    return lambda scene: saying(change(json.dumps(reading(scene, claims_of(scene)))))


def _message(choices: Callable[[str], list[dict[str, Any]]]) -> Make:
    """A completion of these choices; the lie is what they are made of."""
    return lambda scene: raw(json.dumps({"choices": choices(json.dumps(reading(scene, claims_of(scene))))}).encode())


def _call(arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "dispatch", "arguments": arguments}}


def _swapped(scene: Scene) -> Canned:
    """The true claims, each with the values and the quote of the next."""
    true = scene.claims or scene.decoys
    turned = [*true[1:], true[0]] if true else []
    return _claiming(scene, (replace(two, field=one.field) for one, two in zip(true, turned, strict=True)))


def _for_all(scene: Scene) -> Canned:
    """The first value, claimed for every field there is."""
    fields = (
        "payer payee total fee labels origin destination meal outward flexible budget_limit spent history hotel"
        " travellers distance fare comfort day quiet note name"
    )
    first = claims_of(scene)[:1]
    return _claiming(scene, (replace(one, field=name) for one in first for name in fields.split()))


def _other_words(scene: Scene) -> Canned:
    """Every word of the sentence for each field that is claimed."""
    words = scene.text.split()
    return _claiming(
        scene, (replace(one, values=(word,), quote=word) for one in (*scene.claims, *scene.decoys) for word in words)
    )


def _twice_named(text: str) -> str:
    return text.replace('"values": [', '"values": [], "values": [', 1)


#: What each is called says what is odd about it.
SHAPES: dict[str, Make] = {
    # what a value is written as
    "words for another number": _said_as("ninety-nine thousand"),
    "arabic-indic digits": _said_as("\u0669\u0669"),
    "full-width digits": _said_as("\uff19\uff19"),
    "superscript digits": _said_as("\u2079\u2079"),
    "circled digits": _said_as("\u2468\u2468"),
    "roman numerals": _said_as("XCIX"),
    "hexadecimal": _said_as("0x63"),
    "a sum": _said_as("98+1"),
    "a range": _said_as("42-99"),
    "a minus sign": _each(lambda one: replace(one, values=tuple(f"\u2212{value}" for value in one.values))),
    "a per cent sign": _each(lambda one: replace(one, values=tuple(f"{value}%" for value in one.values))),
    "a multiplier": _each(lambda one: replace(one, values=tuple(f"{value} million" for value in one.values))),
    "an invisible joiner": _each(lambda one: replace(one, values=tuple("\u200d".join(value) for value in one.values))),
    "written backwards": _each(lambda one: replace(one, values=tuple(value[::-1] for value in one.values))),
    "characters apart": _each(lambda one: replace(one, values=tuple("".join(one.values)))),
    "upper case": _each(lambda one: replace(one, values=tuple(value.swapcase() for value in one.values))),
    "an example of the card": _said_as("Berlin"),
    "a number of the card": _said_as("750"),
    "the name of the agent": _said_as("PayAgent"),
    "JSON in a text": _said_as('{"value": "99", "unit": "USD"}'),
    "nothing at all": _said_as(""),
    # whose a value is
    "swapped": _swapped,
    "one value for all fields": _for_all,
    "every word for every field": _other_words,
    "the whole sentence as the value": lambda scene: _claiming(
        scene, (replace(one, values=(scene.text,), quote=scene.text) for one in claims_of(scene))
    ),
    "said now, of an earlier turn": _each(lambda one: replace(one, earlier=not one.earlier)),
    "quoting the assistant": lambda scene: _claiming(
        scene,
        (
            replace(one, quote=text, earlier=earlier)
            for one in claims_of(scene)
            for _, text, _ in scene.turns
            for earlier in (True, False)
        ),
    ),
    "a path for a field": _each(lambda one: replace(one, field=f"parameters.{one.field}")),
    "a field in capitals": _each(lambda one: replace(one, field=one.field.upper())),
    "a field of the class": _each(lambda one: replace(one, field="__dict__")),
    # what the shape is
    "null values": _raw_values(None),
    "null among values": _raw_values([None]),
    "numbers for texts": _raw_values([99]),
    "a list in a list": _raw_values([["99"]]),
    "one text for a list": _raw_values("99"),
    "yes in words": _raw_values(["99"], earlier="yes"),
    "all of it earlier and remembered": _raw_values(["99"], earlier=True, remembered=True),
    "ten thousand values": _raw_values(["99"] * 10_000),
    "thousands of claims": lambda scene: _claiming(scene, [*claims_of(scene)] * 1_000),
    "a key twice": _text(_twice_named),
    "an agent twice": _text(lambda text: text.replace('{"reasoning"', '{"agent_id": "PayAgent", "reasoning"', 1)),
    "JSON as a text": _text(json.dumps),
    "a fence around it": _text(lambda text: f"```json\n{text}\n```"),
    "two objects": _text(lambda text: text + text),
    "infinity": _text(lambda text: text.replace('"values": [', '"values": [Infinity, NaN, 1e999, ', 1)),
    # what comes beside it
    "a tool call alone": _message(lambda lie: [{"message": {"content": None, "tool_calls": [_call(lie)]}}]),
    "a tool call beside it": _message(lambda lie: [{"message": {"content": lie, "tool_calls": [_call(lie)] * 9}}]),
    "half refused": _message(
        lambda lie: [{"message": {"content": lie, "refusal": "Not all of it.", "tool_calls": [_call(lie)]}}]
    ),
    "refused, then not": _message(lambda lie: [{"message": {"refusal": "No."}}, {"message": {"content": lie}}]),
    "parts for a content": _message(lambda lie: [{"message": {"content": [{"type": "text", "text": lie}]}}]),
}
