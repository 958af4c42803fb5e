"""What a model is shown as data: lines between marks that they cannot imitate, as many as a budget of tokens allows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.rendering.quoting import plain
from workers.agents.story.prose import clipped
from workers.agents.story.sizes import count_tokens

#: Characters of one line: two long sentences.
_LINE = 300
#: Characters of the name between marks.
_MARK = 60
_ANGLES = str.maketrans("<>", "\u2039\u203a")


@dataclass(frozen=True, slots=True)
class Block:
    """Something that a model is shown as data: `lines` between marks that carry its `name`.

    The higher its `rank`, the sooner its last lines are left out where not all fits. `is_prose` marks the response
    itself: it is one text, and has a budget of its own.
    """

    name: str
    lines: Sequence[str]
    rank: int = 1
    is_prose: bool = False

    @property
    def text(self) -> str:
        """It as it stands in a question, empty when no line is left."""
        if not self.lines:
            return ""
        lines = self.lines if self.is_prose else [plain_line(line) for line in self.lines]
        # Names of a story are data, too.
        mark = plain(self.name, _MARK)
        return "\n".join((f"<{mark}>", *lines, f"</{mark}>"))


def plain_prose(text: str) -> str:
    """Return a response as it is shown: it cannot end the marks that it stands between."""
    return text.translate(_ANGLES)


def plain_line(line: str) -> str:
    """Return *line* as it is shown: one line of visible signs."""
    return plain(line, _LINE)


def fit(blocks: Sequence[Block], prose_tokens: int, tokens: int) -> tuple[Block, ...]:
    """Return *blocks* with the response in at most *prose_tokens*, and all other lines in at most *tokens*.

    Of a longer response the beginning and the end are kept; last lines of the highest rank go first.
    """
    kept = [_clip(block, prose_tokens) if block.is_prose else block for block in blocks]
    left = tokens - sum(map(_marks, kept)) - sum(_weight(block) for block in kept if not block.is_prose)
    for place in sorted(range(len(kept)), key=lambda place: -kept[place].rank):
        if kept[place].is_prose:
            continue
        lines = list(kept[place].lines)
        while lines and left < 0:
            left += _line_weight(lines.pop())
        kept[place] = replace(kept[place], lines=tuple(lines))
    return tuple(kept)


def _clip(block: Block, tokens: int) -> Block:
    return replace(block, lines=tuple(clipped(line, tokens) for line in block.lines))


def _weight(block: Block) -> int:
    return sum(map(_line_weight, block.lines))


def _line_weight(line: str) -> int:
    # One more for the end of the line.
    return count_tokens(plain_line(line)) + 1


def _marks(block: Block) -> int:
    mark = plain(block.name, _MARK)
    return count_tokens(f"<{mark}>\n\n</{mark}>\n")
