"""What a person said earlier in the conversation, and when a model's word suffices to take a value from there.

That a number stands there does not show that it is meant now. It is taken when the sentence refers back and the rules
read it there for the same field; otherwise the person is asked. What others said, the assistant for one, is no source.
"""

from collections.abc import Sequence
from typing import Any

from contracts.messages import ChatTurn
from quantities.numerals import DecimalMark
from supervisor.interpretation.earlier_tasks.references import reference_in
from supervisor.interpretation.proof.evidence import Proven, Source, Used, prove
from supervisor.interpretation.proof.recollection import read_agreed
from supervisor.interpretation.questions import agreed_in, ask_whether
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filling import fill
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import evened

#: Characters of a turn that a question repeats.
_MOST_SHOWN = 200


def said_earlier(
    turns: Sequence[ChatTurn], user_id: str | None, decimal_mark: DecimalMark | None
) -> tuple[Source, ...]:
    """Return what the person *user_id*, or nobody known, said in *turns*, the latest first."""
    own = [turn for turn in turns if turn.speaker == "person" and turn.user_id in (None, user_id)]
    return tuple(Source(scene_of(evened(turn.text), decimal_mark=decimal_mark), turn.turn_id) for turn in reversed(own))


def prove_earlier(
    task: Prepared,
    field: FieldShape,
    said: Sequence[str],
    quote: str,
    sentence: Scene,
    sources: Sequence[Source],
    used: Used,
) -> Proven | Doubt | None:
    """Return *said* as the value of *field*; the question whether it is; None when *quote* does not hold it."""
    proven = prove(field, said, quote, sources, used)
    if proven is None:
        return None
    told = next((value for source in sources if (value := _read_there(task, field, source)) is not None), None)
    refers_back = bool(reference_in(sentence, task.cues.find(sentence.tokens)))
    if refers_back and told == proven.value and not isinstance(told, bool):
        return proven
    source = next(source for source in sources if source.turn_id == proven.spans[0].turn_id)
    return _in_doubt(task, field, proven.value, source.scene.text[:_MOST_SHOWN])


def _read_there(task: Prepared, field: FieldShape, source: Source) -> Any:
    read = fill(source.scene, task)
    return None if field.name in read.guessed else read.values.get(field.name)


def _in_doubt(task: Prepared, field: FieldShape, value: Any, line: str) -> Doubt | None:
    """Return the question whether *value* holds, None when a yes could not be read as that value."""
    doubt = Doubt(field, ask_whether(field, value, line, was_said=True))
    agreed = read_agreed(task, [field], agreed_in(doubt.question))
    return doubt if agreed.values.get(field.name) == value else None
