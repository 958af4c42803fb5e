"""Whether a remembered line says a value of the person themselves, as it holds today, and nothing besides.

"Bob's limit is 5", "the limit was 5 last year" and "never use a limit of 5" hold the same words as "my limit is 5". No
list of words that turn a sentence round is ever complete. So it is the other way: a line is plain when nothing is left
of it without its field, its value and a few words that cannot turn it round.
"""

from collections.abc import Iterable

from supervisor.understanding.outcome import Span
from supervisor.interpretation.proof.evidence import Source
from supervisor.interpretation.values.cues import Cue, CueIndex
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import Token, stems_of, word_set

#: Words that are neither about whom nor about when, how sure or whether. The rules read English alone.
_NEUTRAL = word_set("my the a an i user user's is of at has have with currently now")
#: Only "the user" is who asks: "a user" and "my user" are others.
_PERSON = word_set("user user's")
#: What asks when it comes first ("has the user a limit of 5").
_VERBS = word_set("is has have")
_MARKS = frozenset({":", "="})
_DASHES = frozenset({"-", "\u2013", "\u2014"})
#: What a document or a part of it may be called, as a whole, when it is of nothing but the person.
_OWN_NAMES = frozenset({
    "about", "about me", "about the user", "about user", "details", "facts", "finance", "finances", "general",
    "home", "me", "misc", "money", "notes", "other", "personal", "preferences", "prefs", "profile", "settings",
    "shopping", "travel", "user", "work",
})  # fmt: skip


def is_plain(cues: CueIndex, field: FieldShape, source: Source, spans: Iterable[Span]) -> bool:
    """Return whether *source* says that *field* is what stands at *spans*, of the person, and nothing more.

    Only amounts and choices can be told from the words around them: of a text nobody knows where it ends, and that
    there is nothing, or yes or no, is said by the very words that would be left over.
    """
    if not source.is_sure or not (field.is_numeric or field.kind == "choice"):
        return False
    if not all(_is_own(name, field) for name in source.names):
        return False
    scene = source.scene
    start = len(source.heading)
    said = {place for span in spans for place in _places(scene, span)}
    # In the heading it may be, but nowhere is too little: a choice is read wherever its word stands.
    named = {place for cue in _of(field, cues, scene) for place in _written(scene, cue)}
    tokens = [(place, token) for place, token in enumerate(scene.tokens) if token.start >= start]
    return (
        bool(said)
        and bool(named)
        and all(
            place in said or place in named or _is_neutral(scene, token, tokens[at - 1][1] if at else None)
            for at, (place, token) in enumerate(tokens)
        )
    )


def speaks_of(cues: CueIndex, field: FieldShape, scene: Scene) -> bool:
    """Return whether *scene* may say something of *field*, if only that a value does not hold."""
    has_value = (
        not field.is_numeric or scene.items or scene.is_corrected or any(t.text[0].isdigit() for t in scene.tokens)
    )
    return bool(has_value) and bool(_of(field, cues, scene))


def shown(field: FieldShape, source: Source) -> str:
    """Return the line of *source* as a question shows it: with the names that may say whose it is."""
    line = source.scene.text[len(source.heading) :]
    others = [name for name in source.names if not _is_own(name, field)]
    if others:
        return f"{' / '.join(others)}: {line}"
    return line if any(sign.isalpha() for sign in line) else source.scene.text


def _is_own(name: str, field: FieldShape) -> bool:
    """Return whether a part of a document that is called *name* can be of nobody but the person."""
    words = name.lower().replace("_", " ").split()
    if " ".join(words) in _OWN_NAMES:
        return True
    stems = {stem for phrase in field.phrases for stem in phrase.stems}
    return bool(words) and all(word == "my" or (word.isalpha() and stems_of(word)[0] in stems) for word in words)


def _of(field: FieldShape, cues: CueIndex, scene: Scene) -> list[Cue]:
    return [cue for cue in cues.find(scene.tokens) if cue.field.name == field.name]


def _written(scene: Scene, cue: Cue) -> Iterable[int]:
    """Yield the tokens of *cue*, without those whose inflection says when ("budgeted" for "budget")."""
    words = cue.field.name.lower().split("_")
    for place in range(cue.first, cue.end):
        written = scene.tokens[place].text
        if written in words or not written.endswith("ed"):
            yield place


def _places(scene: Scene, span: Span) -> range:
    return range(scene.index_at(span.start), scene.index_at(span.end - 1) + 1)


def _is_neutral(scene: Scene, token: Token, before: Token | None) -> bool:
    follows = scene.text[token.end :]
    if not token.is_word:
        # A dash right before an amount may be its sign, and a full stop within a text begins another sentence.
        ends = token.text == "." and not follows.strip()
        return token.text in _MARKS or ends or (token.text in _DASHES and follows[:1].isspace())
    if token.text in _PERSON:
        return before is None or before.text == "the"
    return token.text in _NEUTRAL and not (before is None and token.text in _VERBS)
