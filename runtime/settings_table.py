"""The settings as tables: what holds in this process and why, and the page that lists them all."""

import ast
import inspect
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

from pydantic.fields import FieldInfo

from tasklore.runtime import settings as declarations
from tasklore.runtime.settings import Settings, format_setting
from tasklore.runtime.settings_set_by import SET_BY
from tasklore.runtime.variables import variable_of

_UNITS = {
    "_s": "seconds",
    "_ms": "milliseconds",
    "_hours": "hours",
    "_days": "days",
    "_bytes": "bytes",
    "_files": "files",
    "replicas": "copies",
    "slots": "messages",
    "listen_items": "turns or facts",
    "listen_users": "people",
    "llm_max_attempts": "requests",
    "_attempts": "runs",
    "_tokens": "tokens",
    "_concurrency": "requests",
}

_PAGE_HEAD = """# Settings

Every process reads its settings from environment variables once, at its start; options of the command line override
them. An invalid value stops the process with a message that names the variable and the fix; an unknown variable that
begins with `TASKLORE_` causes a warning, as does one that is no longer a setting. `tasklore config`
prints every value and its source. Made from `runtime/settings.py` and `settings_set_by.py` by `make generated`.

| variable | default | values | unit | meaning | who sets it: when |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting as `tasklore config` shows it; secrets and passwords in *value* are masked, *unit* may be empty."""

    name: str
    env: str
    value: str
    unit: str
    source: str
    description: str


def explain(settings: Settings) -> list[SettingRow]:
    """Return every setting with its value, in the order of their declaration, and whether it was set."""
    reasons = _reasons()
    return [
        SettingRow(
            name=name,
            env=variable_of(name),
            value=format_setting(name, getattr(settings, name)),
            unit=_unit(name),
            source=settings.source(name),
            description=reasons[name],
        )
        for name in Settings.model_fields
    ]


def reference_page() -> str:
    """Return the text of docs/reference/settings.md."""
    reasons = _reasons()
    lines = [
        _line(name, field, reasons[name])
        for name, field in Settings.model_fields.items()
    ]
    return _PAGE_HEAD + "\n".join(lines) + "\n"


def _reasons() -> dict[str, str]:
    """Return the docstring of each setting in the file that declares it.

    Read here, where it is shown: pydantic would parse that file anew whenever a process starts.
    """
    (declared,) = (
        node
        for node in ast.parse(inspect.getsource(declarations)).body
        if isinstance(node, ast.ClassDef) and node.name == Settings.__name__
    )
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(declared.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _line(name: str, field: FieldInfo, reason: str) -> str:
    cells = [
        f"`{variable_of(name)}`",
        f"`{format_setting(name, field.default)}`",
        _takes(field),
        _unit(name),
    ]
    return f"| {' | '.join(cells)} | {reason} | {SET_BY[name]} |"


def _unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")


def _takes(field: FieldInfo) -> str:
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    if words:
        return ", ".join(f"`{word}`" for word in words)
    return " ".join(
        text for constraint in field.metadata for text in _bounds(constraint)
    )


def _bounds(constraint: Any) -> list[str]:
    signs = {"gt": "more than", "ge": "from", "lt": "less than", "le": "to"}
    return [
        f"{word} {getattr(constraint, sign)}"
        for sign, word in signs.items()
        if hasattr(constraint, sign)
    ]


if __name__ == "__main__":
    print(reference_page(), end="")  # noqa: T201  # `python -m tasklore.runtime.settings_table > docs/reference/settings.md`
