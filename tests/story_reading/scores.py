"""How well sections agree with a key that was written by hand: precision and recall of each, and what was missed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasklore.contracts.analysis.pieces import Section

#: A finding of a section as text, and an entry of a key.
Body = Mapping[str, Any]


@dataclass
class Score:
    """Sums over chapters, by section: what was found, what of it is right, what was wanted, what of that was found."""

    chapters: int = 0
    found: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    reductions: list[tuple[str, int, int, int]] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)

    def add(self, chapter: Body, sections: Mapping[str, Section]) -> None:
        """Add how well *sections* agree with the key of *chapter*."""
        self.chapters += 1
        told = {name: one.model_dump(mode="json") for name, one in sections.items()}
        key = chapter["key"]
        where = chapter["id"]
        for name, one in told.items():
            self.left_out[name] += one.get("left_out", 0)
            if (cut := one.get("reduction")) is not None:
                self.reductions.append(
                    (f"{where} {name}", cut["before"], cut["after"], cut["pct"])
                )
        self._add_scene(where, key, told["resp_analyzer"])
        for name, found, fits in (
            ("memories", told["memory_create"]["memories"], _mentions),
            ("relationships", told["relationship"]["interactions"], _is_between),
            ("threads", _threads(told["plot_threads"]), _is_thread),
            ("knowledge", told["knowledge"]["facts"], _mentions),
            ("contradictions", told["contradiction"]["found"], _is_conflict),
        ):
            self._match(
                where, name, key.get(name, ()), found, _optional(key, name), fits
            )
        self._add_knowers(where, key.get("knowledge", ()), told["knowledge"]["facts"])

    def lines(self) -> list[str]:
        """Return a line for each section, then one for reductions."""
        shown = [
            f"{self.chapters} chapters",
            "section            precision      recall         left out",
        ]
        for name in self.wanted | self.found:
            parts = (
                (self.right[name], self.found[name]),
                (self.met[name], self.wanted[name]),
            )
            cells = [f"{_percent(one, of)} ({one}/{of})".ljust(15) for one, of in parts]
            shown.append(f"{name:<19}{''.join(cells)}")
        shown.append(f"left out: {dict(+self.left_out)}")
        low = [one for one in self.reductions if one[1] > 1_000 and one[3] < 70]
        negative = [one for one in self.reductions if one[2] > one[1]]
        parts = f"{len(low)} under 70 % of over 1,000 tokens, {len(negative)} negative"
        return [*shown, f"reductions: {len(self.reductions)}, {parts}"]

    def _add_scene(self, where: str, key: Body, found: Body) -> None:
        people = found.get("chars", {})
        scene = found.get("scene", {})
        time = found.get("time", {})
        wanted = key.get("scene", {})
        types = [
            str(one) for one in (wanted.get("type"), *wanted.get("also", ())) if one
        ]
        self._count(
            where,
            "scene type",
            types,
            [scene["type"]] if scene.get("type") else [],
            _among(types),
        )
        names = key.get("characters", ())
        known = [*names, *_optional(key, "characters")]
        self._match(
            where, "characters", names, people.get("in_scene", ()), known, _is_named
        )
        if "mentioned" in key:
            spoken_of = key["mentioned"]
            also = [*spoken_of, *names, *_optional(key, "mentioned")]
            self._match(
                where,
                "mentioned",
                spoken_of,
                people.get("mentioned", ()),
                also,
                _is_named,
            )
        for name, said in (
            ("place", found.get("loc")),
            ("time", time.get("timestamp")),
            ("elapsed", _spelled(time.get("elapsed"))),
        ):
            accepted = _listed(key.get(name))
            self._count(
                where,
                name,
                accepted,
                [] if said is None else [str(said)],
                _among(accepted),
            )

    def _count(
        self,
        where: str,
        name: str,
        accepted: Sequence[str],
        found: Sequence[str],
        fits: Callable[[str], bool],
    ) -> None:
        """Count a section with one value, of which *accepted* are all right."""
        right = [one for one in found if fits(one)]
        self.wanted[name] += bool(accepted)
        self.met[name] += bool(accepted and right)
        self.found[name] += len(found)
        self.right[name] += len(right)
        if accepted and not right:
            self.misses.append(
                f"{where} {name}: wanted {' or '.join(accepted)}, found {', '.join(found) or 'nothing'}"
            )
        elif found and not right:
            self.misses.append(
                f"{where} {name}: found {', '.join(found)}, which is not told"
            )

    def _match(
        self,
        where: str,
        name: str,
        wanted: Sequence[Any],
        found: Sequence[Any],
        optional: Sequence[Any],
        fits: Callable[[Any, Any], bool],
    ) -> None:
        for one in wanted:
            self.wanted[name] += 1
            is_met = any(fits(each, one) for each in found)
            self.met[name] += is_met
            self.misses += [] if is_met else [f"{where} {name}: missed {one}"]
        for each in found:
            self.found[name] += 1
            is_right = any(fits(each, one) for one in (*wanted, *optional))
            self.right[name] += is_right
            self.misses += (
                [] if is_right else [f"{where} {name}: also found {_short(each)}"]
            )

    def _add_knowers(
        self, where: str, wanted: Sequence[Body], found: Sequence[Body]
    ) -> None:
        """Count who knows what, of facts that were found."""
        for one in wanted:
            facts = [each for each in found if _mentions(each, one)]
            if not facts:
                continue
            knowing = {name for each in facts for name in each.get("known", ())}
            self._match(
                where,
                "known by",
                one.get("known_by", ()),
                sorted(knowing),
                (),
                _is_named,
            )


def _spelled(minutes: int | None) -> str | None:
    """Return a number of minutes as people say it in a key: in days where it is whole days."""
    if minutes is None:
        return None
    for length, unit in ((1_440, "days"), (60, "hours")):
        if minutes >= length and minutes % length == 0:
            return f"{minutes // length} {unit}"
    return f"{minutes} minutes"


def _threads(found: Body) -> list[dict[str, Any]]:
    states = (("new", "new"), ("mentioned", "touched"), ("resolved", "resolved"))
    return [
        {**one, "state": state} for name, state in states for one in found.get(name, ())
    ]


def _optional(key: Body, section: str) -> list[Any]:
    return [
        one
        for one in key.get("optional", ())
        if one.get("section", section) in (section, None)
    ]


def _listed(said: Any) -> list[str]:
    return (
        [str(one) for one in said if str(one)]
        if isinstance(said, list)
        else [str(said)]
        if said
        else []
    )


def _among(accepted: Iterable[str]) -> Callable[[str], bool]:
    words = [one.casefold() for each in accepted for one in each.split("|")]
    return lambda said: any(
        one in said.casefold() or said.casefold() in one for one in words
    )


def _says(text: str, words: str) -> bool:
    return any(one.strip().casefold() in text for one in words.split("|"))


def _text(found: Any) -> str:
    if isinstance(found, dict):
        return " ".join(map(_text, found.values()))
    return (
        " ".join(map(_text, found))
        if isinstance(found, list | tuple)
        else str(found).casefold()
    )


def _mentions(found: Body, wanted: Body) -> bool:
    text = _text(
        {
            name: value
            for name, value in found.items()
            if name not in ("id", "known", "src", "state")
        }
    )
    whose = wanted.get("who")
    is_theirs = not whose or "char" not in found or _is_named(str(found["char"]), whose)
    return is_theirs and all(
        _says(text, words) for words in wanted.get("must_mention", ())
    )


def _is_thread(found: Body, wanted: Body) -> bool:
    return wanted.get("state", found["state"]) == found["state"] and _mentions(
        found, wanted
    )


def _is_between(found: Body, wanted: Body) -> bool:
    pair = wanted.get("between")
    if pair is None:
        return _mentions(found, wanted)
    is_pair = all(any(_is_named(name, one) for name in found["chars"]) for one in pair)
    return is_pair and wanted.get("direction", "up") == (
        "up" if found["change"] > 0 else "down"
    )


def _is_conflict(found: Body, wanted: Body) -> bool:
    old, new = (f"{found['subj']} {found[side]}".casefold() for side in ("old", "new"))
    told = (
        (old, wanted.get("old_mentions", ())),
        (new, wanted.get("new_mentions", ())),
    )
    return bool(wanted.get("old_mentions")) and all(
        _says(text, words) for text, listed in told for words in listed
    )


def _is_named(found: Any, wanted: Any) -> bool:
    """Return whether two names are one: the same, or a part of the other."""
    if isinstance(wanted, dict):
        return all(
            _says(str(found).casefold(), words)
            for words in wanted.get("must_mention", ())
        )
    one = str(found).casefold()
    other = str(wanted).casefold()
    return one == other or bool(
        set(one.split())
        & set(other.split()) - {"the", "dr", "mr", "mrs", "miss", "old"}
    )


def _short(found: Any) -> str:
    if not isinstance(found, dict):
        return str(found)
    shown = {name: value for name, value in found.items() if name in _SHOWN}
    return str(shown or found)[:300]


#: What of a finding a miss shows.
_SHOWN = frozenset(
    (
        "char",
        "sum",
        "chars",
        "change",
        "trigger",
        "state",
        "title",
        "subj",
        "fact",
        "old",
        "new",
    )
)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
