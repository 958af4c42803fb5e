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
Ends with 0 for an answer; with 1 if the task failed or was not finished in time; with 3 if no supervisor answers;
with 4 if a clarification is needed; with 5 if no agent can handle the request.
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
                "Bypass the result cache for this question (no read, no write).",
            ),
            make_flag(
                ["--verbose", "-v", "verbose"],
                "Show on stderr which task answered, from which values, and how long "
                "it took.",
            ),
        ]
        self.help = f"{describe(entry)}\n\n{_ENDS}"
        self.entry = entry

    def invoke(self, ctx: Any) -> object:
        """Ask; nothing that a client does not need is loaded."""
        from tasklore.commands.ask.ask import ask_and_print

        with leaving_when_unread():
            return ask_and_print(self.entry, ctx.params)
