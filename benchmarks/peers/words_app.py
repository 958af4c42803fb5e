"""What other libraries read in sentences: questions come as JSON on stdin, answers leave as JSON on stdout.

Runs in the peers' own environment and therefore knows nothing of Tasklore. A library is asked only what it is for.
"""

import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

warnings.filterwarnings("ignore")

import number_parser  # noqa: E402 - it warns while it is imported
import recognizers_number as numbers  # noqa: E402 - the same
import recognizers_number_with_unit as units  # noqa: E402 - the same
from quantulum3 import parser as quantulum  # noqa: E402 - the same
from text_to_num import alpha2digit, text2num  # noqa: E402 - the same
from word2number import w2n  # noqa: E402 - the same

Reader = Callable[[str], list[str]]

_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")


def _recognized(recognize: Callable[..., Any]) -> Reader:
    def read(text: str) -> list[str]:
        found = recognize(text, numbers.Culture.English)
        values = [one.resolution.get("value") for one in found if one.resolution]
        return [
            str(value).rstrip("%") for value in values if value not in {None, "null"}
        ]

    return read


def _recognized_whole(text: str) -> list[str]:
    found = numbers.recognize_number(text, numbers.Culture.English)
    is_whole = len(found) == 1 and found[0].end - found[0].start + 1 == len(text)
    return [str(found[0].resolution["value"])] if is_whole else []


def _quantities(fits: Callable[[Any], bool]) -> Reader:
    def read(text: str) -> list[str]:
        return [str(one.value) for one in quantulum.parse(text) if fits(one.unit)]

    return read


def _quantity_whole(text: str) -> list[str]:
    found = quantulum.parse(text)
    return [str(found[0].value)] if len(found) == 1 and found[0].surface == text else []


def _is_measure(unit: Any) -> bool:
    return (
        unit.entity.name not in {"dimensionless", "currency"}
        and unit.name != "percentage"
    )


def _digits_in(text: str) -> list[str]:
    return _DIGITS.findall(text)


def _parsed_whole(text: str) -> list[str]:
    value = number_parser.parse_number(text, language="en")
    return [] if value is None else [str(value)]


SYSTEMS: dict[str, dict[str, Reader]] = {
    "recognizers-text": {
        "numbers": _recognized(numbers.recognize_number),
        "money": _recognized(units.recognize_currency),
        "percents": _recognized(numbers.recognize_percentage),
        "measures": _recognized(units.recognize_dimension),
        "ages": _recognized(units.recognize_age),
        "whole": _recognized_whole,
        "one": _recognized_whole,
    },
    "quantulum3": {
        "numbers": _quantities(lambda unit: unit.name == "dimensionless"),
        "money": _quantities(lambda unit: unit.entity.name == "currency"),
        "percents": _quantities(lambda unit: unit.name == "percentage"),
        "measures": _quantities(_is_measure),
        "ages": _quantities(_is_measure),
        "whole": _quantity_whole,
        "one": _quantity_whole,
    },
    "text2num": {
        "numbers": lambda text: _digits_in(alpha2digit(text, "en")),
        "whole": lambda text: [str(text2num(text, "en"))],
        "one": lambda text: [str(text2num(text, "en"))],
    },
    "word2number": {
        "numbers": lambda text: [str(w2n.word_to_num(text))],
        "whole": lambda text: [str(w2n.word_to_num(text))],
        "one": lambda text: [str(w2n.word_to_num(text))],
    },
    "number-parser": {
        "numbers": lambda text: _digits_in(number_parser.parse(text, language="en")),
        "whole": _parsed_whole,
        "one": _parsed_whole,
    },
}


def _answer(read: Reader, text: str) -> list[str]:
    try:
        return read(text)
    except Exception:  # noqa: BLE001 - each library says in its own way that it cannot read a text
        return []


def main() -> None:
    """Answer `{question: [sentence, ...]}` with `{system: {question: {"values": [...], "ns": [...]}}}`."""
    asked = json.load(sys.stdin)
    told: dict[str, dict[str, Any]] = {}
    for system, readers in SYSTEMS.items():
        told[system] = {}
        for name, (question, texts) in asked.items():
            if question not in readers:
                continue
            read = readers[question]
            for text in texts[:20]:
                _answer(read, text)
            values = []
            times = []
            for text in texts:
                started = time.perf_counter_ns()
                values.append(_answer(read, text))
                times.append(time.perf_counter_ns() - started)
            told[system][name] = {"values": values, "ns": times}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
