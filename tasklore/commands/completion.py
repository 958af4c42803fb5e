"""`tasklore completion`: scripts for shells that hold every command, option and closed word, and start nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasklore.contracts.errors import InvalidInput


@dataclass(frozen=True)
class CompletionWords:
    """The words that complete a command: *words* next, *options*, and the words of an option with closed ones."""

    words: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    closed: dict[str, list[str]] = field(default_factory=dict)


def print_completion(shell: str, root: Any) -> None:
    """Print the script for *shell*, which completes the commands below *root*.

    Raises:
        InvalidInput: there is none for it.
    """
    if shell not in _SCRIPTS:
        raise InvalidInput(f"SHELL {shell!r} is not one of {', '.join(_SCRIPTS)}")
    print(_SCRIPTS[shell](dict(_walk(root, ""))), end="")


def _walk(command: Any, path: str) -> Iterator[tuple[str, CompletionWords]]:
    offer = CompletionWords()
    entry = getattr(command, "entry", None)
    fields = {one["option"]: one for one in entry["fields"]} if entry else {}
    for one in command.params:
        if one.param_type_name != "option" or getattr(one, "hidden", False):
            continue
        offer.options.extend((*one.opts, *one.secondary_opts))
        for name in one.opts:
            if name in fields and fields[name]["choices"]:
                offer.closed[name] = fields[name]["choices"]
    offer.options.append("--help")
    inner = getattr(command, "commands", {})
    offer.words.extend(inner)
    yield path, offer
    for name in inner:
        yield from _walk(inner[name], f"{path} {name}".strip())


def _cases(offers: Mapping[str, CompletionWords], indent: str) -> Iterator[str]:
    """Yield the arms of a `case` of bash or zsh: by the command, or by the command and the option before."""
    for path, offer in offers.items():
        for option, words in offer.closed.items():
            yield f'{indent}"{path}|{option}") found="{" ".join(words)}" ;;'
    for path, offer in offers.items():
        yield f'{indent}"{path}|"*) found="{" ".join((*offer.words, *offer.options))}" ;;'


def _script_bash(offers: Mapping[str, CompletionWords]) -> str:
    arms = "\n".join(_cases(offers, "    "))
    return f"""# Completion of tasklore for bash: eval "$(tasklore completion bash)"
_tasklore() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" next="" word found="" number
  for ((number = 1; number < COMP_CWORD; number++)); do
    word="${{COMP_WORDS[number]}}"
    next="${{command:+$command }}$word"
    case " $_tasklore_commands " in *" ${{next// /.}} "*) command="$next" ;; esac
  done
  case "$command|$before" in
{arms}
  esac
  COMPREPLY=($(compgen -W "$found" -- "$current"))
}}
_tasklore_commands="{_names(offers)}"
complete -o default -F _tasklore tasklore
"""


def _script_zsh(offers: Mapping[str, CompletionWords]) -> str:
    arms = "\n".join(_cases(offers, "    "))
    return f"""#compdef tasklore
# Completion of tasklore for zsh: eval "$(tasklore completion zsh)"
_tasklore() {{
  local before="${{words[CURRENT-1]}}" command="" next="" word found=""
  for word in "${{words[@]:1:$((CURRENT - 2))}}"; do
    next="${{command:+$command }}$word"
    case " $_tasklore_commands " in *" ${{next// /.}} "*) command="$next" ;; esac
  done
  case "$command|$before" in
{arms}
  esac
  compadd -- ${{=found}} || _files
}}
_tasklore_commands="{_names(offers)}"
compdef _tasklore tasklore
"""


def _script_fish(offers: Mapping[str, CompletionWords]) -> str:
    lines = [
        "# Completion of tasklore for fish: tasklore completion fish | source",
        f"set -g __tasklore_commands {' '.join(_names(offers).split())}",
        "function __tasklore_at",
        "    set -l command ''",
        "    for word in (commandline -opc)[2..-1]",
        '        set -l next (string trim -- "$command $word")',
        "        if contains -- (string replace -a ' ' . -- $next) $__tasklore_commands",
        "            set command $next",
        "        end",
        "    end",
        '    test "$command" = "$argv"',
        "end",
    ]
    for path, offer in offers.items():
        at = f"complete -c tasklore -n '__tasklore_at {path}'"
        if offer.words:
            lines.append(f"{at} -f -a '{' '.join(offer.words)}'")
        for option in offer.options:
            closed = offer.closed.get(option)
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"{at} {flag}{_spell_closed(closed)}")
    return "\n".join(lines) + "\n"


def _spell_closed(words: list[str] | None) -> str:
    return f" -x -a '{' '.join(words)}'" if words else ""


def _names(offers: Mapping[str, CompletionWords]) -> str:
    """Return the commands, each as one word."""
    return " ".join(path.replace(" ", ".") for path in offers if path)


_SCRIPTS: dict[str, Callable[[Mapping[str, CompletionWords]], str]] = {
    "bash": _script_bash,
    "zsh": _script_zsh,
    "fish": _script_fish,
}
