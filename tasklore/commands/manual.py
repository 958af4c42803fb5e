"""Every command's help as one page; `python -m tasklore.commands.manual > docs/reference/cli.md` writes it."""

from collections.abc import Iterator
from typing import Any

from tasklore.commands.app import make_root

_WIDTH = 100

_HEAD = """# The `tasklore` command

Made from the help of each command by `make generated`.

- Where the API is: `--api` or `TASKLORE_API_URL`, and `TASKLORE_OPERATIONS_URL` for commands that need an operator's
  rights at the servers, with the key of `TASKLORE_API_KEY` (there `TASKLORE_OPERATIONS_KEY`, where it is set); else the
  `endpoints.json` below. `ask`, and commands of nouns in the plural, are clients of it.
- Where the servers are, for other commands: `TASKLORE_NATS_URL` and `TASKLORE_REDIS_URL`, else the `endpoints.json` of
  a running `tasklore up`, in `TASKLORE_DATA_DIR` or in `.tasklore` of the current directory.
- Exit codes: 0 done, 1 the task failed or was not finished in time, 2 the command line, a file or a setting is
  unusable, 3 a server cannot be reached, 4 a clarification is needed, 5 no agent can handle the request, 130
  interrupted by Ctrl-C.
- Results go to stdout, everything else to stderr, an error in one line that names the fix. Colours and spinners appear
  only on a terminal, colours never with `NO_COLOR` set. `--json` prints for programs.
"""


def page() -> str:
    """Return the manual."""
    root = make_root()
    sections = [
        f"## `{path}`\n\n```text\n{text}\n```\n"
        for path, text in _pages(root, None, "tasklore")
    ]
    return "\n".join([_HEAD, *sections])


def _pages(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
    settings = {**command.context_settings, "terminal_width": _WIDTH}
    with command.context_class(
        command, info_name=name, parent=parent, **settings
    ) as context:
        text = "\n".join(
            line.rstrip() for line in command.get_help(context).strip().splitlines()
        )
        yield context.command_path, text
        for inner in (
            command.list_commands(context) if hasattr(command, "list_commands") else ()
        ):
            yield from _pages(command.get_command(context, inner), context, inner)


if __name__ == "__main__":
    print(page(), end="")
