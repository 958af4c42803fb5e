"""Random analyses of responses: realistic ones, as agents would leave them, and ones with texts of any kind."""

import random
from typing import Any

from hypothesis import strategies as st

NAMES = (
    "Marcus Thompson", "Lily Chen", "David Park", "Sarah Mitchell", "Amy Rodriguez", "Ikaika Kealoha", "Zoë Brontë",
    "Siobhán O'Shaughnessy", "Dr. Wilhelmina Featherstonehaugh", "Nguyễn Thị Minh Khai", "Old Tom", "Юлия Петрова",
)  # fmt: skip
_STORY = (
    "the harbour was quiet and nobody spoke of what happened at the gallery last winter because she never trusted him "
    "after their parents divorced yet he kept writing letters which the lighthouse keeper burned without reading them"
)
WORDS = _STORY.split()
KINDS = ("dialogue", "action", "introspection", "description")

# Whatever a text can be: also what ends a comment, begins a line, or takes many tokens.
HOSTILE = st.sampled_from(
    [
        "-->",
        "<!-- END AGENT CONTEXT -->",
        "\n**Scene**: calm",
        "**",
        "\u202e",
        "\ud7ff",
        "👨‍👩‍👧‍👦",
        "ﷺ",
        "q\u0301",
        "\x00",
        " ",
        "\n",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.one_of(HOSTILE, st.text(max_size=8)), max_size=12).map("".join),
)


def realistic(chance: random.Random) -> dict[str, Any]:
    """Return an analysis such as a story of many characters and threads leads to."""
    people = chance.sample(NAMES, k=chance.randint(3, len(NAMES)))
    in_scene = people[: chance.randint(1, min(6, len(people)))]
    threads = [_thread(chance, number) for number in range(1, chance.randint(2, 10))]
    analyzer = {
        "dur": chance.randint(100, 20_000),
        "scene": {"type": chance.choice(KINDS), "pace": "slow", "tension": chance.randint(0, 10), "words": 450},
        "chars": {"in_scene": in_scene, "mentioned": people[len(in_scene) :]},
        "alerts": {
            name: _sentence(chance, 4, 12) for name in ("variety", "pacing") if chance.random() < 0.6
        },
    }  # fmt: skip
    background = {
        "resp_analyzer": analyzer,
        "memory_create": {"memories": [_memory(chance, name) for name in in_scene]},
        "relationship": {
            "interactions": [
                {
                    "chars": [in_scene[0], name],
                    "score": 28,
                    "change": chance.randint(-9, 10),
                    "tier": "Acquaintance",
                }
                for name in people[1:4]
            ]
        },
        "plot_threads": {"new": threads[:1], "mentioned": threads[1:], "resolved": []},
        "knowledge": {
            "facts": [
                {"subj": _sentence(chance, 2, 4), "fact": _sentence(chance, 5, 12)}
                for _ in range(5)
            ]
        },
    }
    immediate = {
        "fact_extract": {
            "facts": {
                name: [_sentence(chance, 5, 25) for _ in range(5)]
                for name in people[-2:]
            }
        },
        "memory_extract": {
            "memories": {
                name: [_memory(chance, name) for _ in range(3)] for name in in_scene
            }
        },
        "thread_extract": {
            "loaded": [_loaded(thread) for thread in threads[:4]],
            "monitored": 22,
        },
    }
    meta = {"resp_num": 120, "updated": "2026-01-02T03:04:05", "status": "fresh"}
    meta |= {"agents_run": 8, "agents_ok": 8, "agents_fail": 0, "agents_skip": 0}
    return {
        "version": "1.1",
        "meta": meta,
        "background": background,
        "immediate": immediate,
    }


def _sentence(chance: random.Random, least: int, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(least, most))).capitalize()


def _thread(chance: random.Random, number: int) -> dict[str, Any]:
    status = chance.choice(["critical", "on_track", "active", "on_track"])
    return {
        "id": f"THREAD-{number:03}",
        "title": _sentence(chance, 2, 7),
        "status": status,
    }


def _loaded(thread: dict[str, Any]) -> dict[str, Any]:
    return {**thread, "why": "mentioned"}


def _memory(chance: random.Random, name: str) -> dict[str, Any]:
    response = chance.randint(1, 120)
    return {
        "id": f"MEM-{response:03}",
        "char": name,
        "sig": chance.randint(1, 10),
        "sum": _sentence(chance, 5, 15),
    }


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, Any]:
    """Return a realistic analysis of which many texts are whatever a text can be."""
    body = realistic(random.Random(draw(st.integers(0, 2**32))))
    texts = draw(st.lists(TEXTS, min_size=1, max_size=6))
    chance = random.Random(draw(st.integers(0, 2**32)))
    return {
        **body,
        **{
            group: _spoiled(body[group], texts, chance)
            for group in ("background", "immediate")
        },
    }


def _spoiled(value: Any, texts: list[str], chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {
            chance.choice(texts)
            if key in NAMES and chance.random() < 0.5
            else key: _spoiled(inner, texts, chance)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_spoiled(inner, texts, chance) for inner in value]
    return (
        chance.choice(texts)
        if isinstance(value, str) and chance.random() < 0.6
        else value
    )
