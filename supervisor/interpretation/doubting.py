"""Amounts that were only guessed at, although the words beside them say what they are.

The one amount that is left goes to the one field that is open: mostly rightly. But "limit 70k ..., limit 60k" says of
both what they are: the other one is no spending, and which of the two is meant only the person knows.
"""

from collections.abc import Sequence

from supervisor.understanding.outcome import Span
from supervisor.interpretation.questions import ask_which_value
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import LIGHT


def doubt_guesses(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take back each guess in *filled* that another field was named for, and doubt that field."""
    if not filled.guessed:
        return
    cues = task.cues.find(scene.tokens)
    for span in [one for one in filled.spans if one.field in filled.guessed]:
        cue = _named_before(scene, cues, span)
        if cue is None or cue.field.name == span.field or cue.field.is_list or not cue.field.is_numeric:
            continue
        said = next((one for one in filled.spans if one.field == cue.field.name), None)
        beside = _named_before(scene, cues, said) if said is not None else None
        # Of two words for it ("budget: 42k, limit 50k") one may be said of the whole.
        if said is None or beside is None or _words(scene, beside) != _words(scene, cue):
            continue
        filled.drop(span.field)
        filled.doubt(Doubt(cue.field, ask_which_value(cue.field, [said.text, span.text])))


def _words(scene: Scene, cue: Cue) -> list[str]:
    return [token.stem for token in scene.tokens[cue.first : cue.end]]


def _named_before(scene: Scene, cues: Sequence[Cue], span: Span) -> Cue | None:
    """Return the cue right before the amount at *span*, with nothing but light words between them."""
    place = scene.index_at(span.start)
    while place > 0 and (scene.tokens[place - 1].text in LIGHT or scene.tokens[place - 1].text in {":", "=", "$"}):
        place -= 1
    return next((cue for cue in cues if cue.end == place), None)
