"""The one reader of what a model wrote: the JSON value in its text, whatever stands around it.

Models wrap an answer in a fence, think aloud before it, add a comma or a byte order mark. All of that is read; what is
no JSON even so, or does not fit, is an error that names the fault, so that the model can mend it. Nothing is made up:
an answer that ends in the middle is none.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tasklore.contracts.errors import LlmMalformed
from tasklore.contracts.faults import fault_of

T = TypeVar("T", bound=BaseModel)

#: Characters of faults that an error repeats.
_QUOTE = 300
#: Characters of a malformed answer that goes back to its model; a longer one would cost more than a new one.
_LONGEST_ANSWER = 20_000
#: Characters of what a model wrote that an error shows to people.
LONGEST_WORDS = 200
#: Places of one text at which a value is looked for.
_MOST_PLACES = 64
#: Digits of a whole number that Python reads.
_MOST_DIGITS = 4_000

_THOUGHT = re.compile(
    r"<(think|thinking|thought|reasoning|reflection)>.*?</\1>",
    re.DOTALL | re.IGNORECASE,
)
#: Where a template has opened the thought itself, only its end is in the text.
_THOUGHT_END = re.compile(
    r"</(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE
)
_THOUGHT_BEGIN = re.compile(
    r"\s*<(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE
)
_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n?(.*?)```", re.DOTALL)
#: A string, or a comma before the end of a list or an object.
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def answer_in(text: str, answer: type[T]) -> T:
    """Return the *answer* that a model wrote in *text*; of several that fit, the last one, which is its conclusion.

    Raises:
        LlmMalformed: none fits; its `answer` is *text*, None when that is too long to be shown again.
    """
    text = text.lstrip("\ufeff")
    try:
        # Most answers are plain JSON, and may hold anything in their texts.
        return answer.model_validate_json(text)
    except ValidationError as error:
        faults = [error]
    fit: T | None = None
    for value in _values_in(text):
        try:
            fit = answer.model_validate_json(json.dumps(value))
        except ValidationError as error:
            faults.append(error)
        except RecursionError:
            continue
    if fit is not None:
        return fit
    # What was meant as the answer says more than that something around it is no JSON.
    raise LlmMalformed(
        f"the answer is no {answer.__name__}: {problems_of(faults[-1])}",
        text if len(text) <= _LONGEST_ANSWER else None,
    )


def json_in(text: str) -> str:
    """Return the last JSON object in *text*, as JSON; *text* as it is where it has none, or is one already."""
    if is_whole(text):
        return text
    values = list(_values_in(text.lstrip("\ufeff")))
    return json.dumps(values[-1]) if values else text


def object_at(text: str, place: int) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object that begins at *place* of *text*, as it can be used, and "", or None and the fault.

    Half of a surrogate pair becomes the replacement character, NaN and infinity null.
    """
    try:
        value, _ = _DECODER.raw_decode(text, place)
        value = _clean(value)
    except (ValueError, RecursionError) as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, f"it is a JSON {type(value).__name__}, no object"
    return value, ""


def whole_in(text: str) -> str:
    """Return the one JSON object that *text* is about, as JSON; *text* as it is where it is one, or has none.

    Only what begins first is looked at: an object within one that was cut off is another one.
    """
    place = text.find("{")
    if is_whole(text) or place < 0:
        return text
    value, _ = _read_at(text, place)
    return text if value is None else json.dumps(value)


def is_whole(text: str) -> bool:
    """Return whether *text* is JSON as it stands; a text that is too deep to be read counts as that."""
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def text_of(content: object) -> str:
    """Return the text of a message's *content*: a string, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [
        part.get("text") if isinstance(part, Mapping) else part for part in content
    ]
    return "".join(part for part in parts if isinstance(part, str))


def words_of(text: str) -> str:
    """Return the beginning of *text* on one line, for people who want to know what a model wrote."""
    line = " ".join(_SURROGATE.sub("\ufffd", text[: 4 * LONGEST_WORDS]).split())
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]}..."


def _values_in(text: str) -> Iterator[Any]:
    """Yield the JSON objects of *text* in their order, those of its fences if it has any; none of a thought."""
    said = _THOUGHT.sub(" ", text)
    if ends := list(_THOUGHT_END.finditer(said)):
        said = said[ends[-1].end() :]
    if _THOUGHT_BEGIN.match(said):
        # Its end never came.
        return
    fenced = [match[1] for match in _FENCE.finditer(said)]
    found = [value for part in fenced for value in _objects_in(part)]
    yield from found or _objects_in(said)


def _objects_in(text: str) -> Iterator[Any]:
    place = text.find("{")
    for _ in range(_MOST_PLACES):
        if place < 0:
            return
        value, end = _read_at(text, place)
        if value is not None:
            yield value
        elif _is_cut_off(text, place):
            # What stands within an object that ends in the middle is a part of it, and no answer.
            return
        place = text.find("{", end)


def _read_at(text: str, place: int) -> tuple[Any, int]:
    """Return the object at *place* of *text* and where it ends; None and the next place where none is."""
    try:
        value, end = _DECODER.raw_decode(text, place)
        return _clean(value), end
    except (ValueError, RecursionError):
        pass
    # Commas before an end are dropped outside strings; the text up to here is as it was.
    mended = _COMMA.sub(lambda match: match[1] or "", text[place:])
    try:
        value, length = _DECODER.raw_decode(mended)
        value = _clean(value)
    except (ValueError, RecursionError):
        return None, place + 1
    # How many commas were dropped in it is not known: nothing behind it is looked at.
    return value, len(text) if length else place + 1


def _is_cut_off(text: str, place: int) -> bool:
    """Return whether the object at *place* of *text* is right up to the end of the text, and does not end there."""
    try:
        _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        is_open = error.msg.startswith("Unterminated string")
        return is_open or error.pos >= len(text.rstrip())
    except (ValueError, RecursionError):
        return False
    return False


def _whole(digits: str) -> int | str:
    """Return the number of *digits*; one that Python would refuse stays as it was written."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


#: NaN and infinity are no numbers of JSON: a field that needs one says so.
_DECODER = json.JSONDecoder(
    strict=False, parse_int=_whole, parse_constant=lambda _word: None
)


def _clean(value: Any) -> Any:
    """Return *value* with half of a surrogate pair, which no text can hold, as the replacement character."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        # 1e999
        return None
    return value


def problems_of(error: ValidationError) -> str:
    """Name each field and its fault, without the value, which may be private."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(map(fault_of, faults))[:_QUOTE]
