"""The command `tasklore ask`, which is `tasklore requests ask` too: that of its operation, and what a person adds."""

from typing import Any, cast

from tasklore.commands.operations.commands import (
    OperationCommand,
    describe,
    leaving_when_unread,
    make_flag,
)
from tasklore.contracts.manifest import OperationEntry

_ENDS = """
Ends with 0 for an answer; with 1 when the task failed or was not finished in time; with 3 when no supervisor answers;
with 4 for a question back; with 5 for "I cannot do that".
""".strip()
#: Fields that are no options: a person always hears why an answer is not there.
_SETTLED = frozenset({"pending_reply"})


class AskCommand(OperationCommand):
    """The command of the operation that asks in plain words."""

    def __init__(self, entry: OperationEntry, name: str | None = None) -> None:
        fields = [one for one in entry["fields"] if one["name"] not in _SETTLED]
        super().__init__(cast("OperationEntry", {**entry, "fields": fields}), name)
        self.params += [
            make_flag(
                ["--no-memory", "no_memory"],
                "Neither read nor write the long-term memory for this question.",
            ),
            make_flag(
                ["--verbose", "-v", "verbose"],
                "Say on stderr which task answered, from which values, and in what time.",
            ),
        ]
        self.help = f"{describe(entry)}\n\n{_ENDS}"
        self.entry = entry

    def invoke(self, ctx: Any) -> object:
        """Ask; nothing that a client does not need is loaded."""
        from tasklore.commands.ask.ask import ask_and_print

        with leaving_when_unread():
            return ask_and_print(self.entry, ctx.params)
