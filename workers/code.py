"""Which code a task's results were computed by, as a few characters of the memory's keys."""

import ast
import hashlib
import importlib.util
import inspect
import linecache
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

#: Bytes; twice as many characters in every key. Few edits are made within one time to live.
_DIGEST = 4
#: Our own package: an agent that is shipped counts with its own folder, not with everything.
_OURS = Path(__file__).parents[1]


def code_digest(function: Callable[..., Any], label: str) -> str:
    """Return 8 hexadecimal digits of the module that *function* lives in, and of those of its package that it imports.

    Formatting and comments do not count; docstrings do, since those of classes are part of what models are asked.
    Modules of its package are those that its imports lead to, one after the other, within its top-level package, or
    within its folder where it is in none; `import_module` counts where it is given a name. Installed libraries are not
    seen, nor are files of data that are read. A function without readable source
    (typed into an interpreter, frozen) warns and counts by its own compiled code alone. *label* names it there.
    """
    function = inspect.unwrap(function)
    variables: Mapping[str, Any] = getattr(function, "__globals__", {})
    source = _source_in(function.__code__.co_filename, variables)
    try:
        if source:
            own = _of_source(source)
            others = _imported(Path(function.__code__.co_filename), source, variables)
            return _digest("".join([own, *others])) if others else own
    except SyntaxError:
        # What lies there is not what was compiled.
        pass
    warnings.warn(
        f"{label}: its source cannot be read, so that only edits of the function itself "
        "invalidate cached results; raise its version when anything else changes",
        stacklevel=5,
    )
    return _digest(_plain(function.__code__))


def _source_in(file: str, variables: Mapping[str, Any] | None = None) -> str:
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, dict(variables) if variables else None))


def _imported(file: Path, source: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the digest of each module of the package of *file* to which the imports of *source* lead."""
    own = str(variables.get("__package__") or "")
    home = _home_of(file, own)
    found: dict[Path, str] = {}
    waiting = [(source, own)]
    while waiting:
        text, package = waiting.pop()
        for name in _imports(text, package):
            path, inner = _file_of(name)
            if (
                path is None
                or path in found
                or path == file
                or not path.is_relative_to(home)
                or "site-packages" in path.relative_to(home).parts
            ):
                continue
            with suppress(SyntaxError):
                found[path] = _of_source(other := _source_in(str(path)))
                waiting.append((other, inner))
    return [f"{path.relative_to(home)}:{found[path]}" for path in sorted(found)]


def _home_of(file: Path, package: str) -> Path:
    """Return the folder of the top-level package that *file* is in, or its own folder; in ours always the latter.

    *package* is the name of its package: one without `__init__.py` is known by that.
    """
    home = file.parent
    names = tuple(package.split(".")) if package else ()
    if names and home.parts[-len(names) :] == names:
        home = file.parents[len(names) - 1]
    while (home / "__init__.py").is_file() and (home.parent / "__init__.py").is_file():
        home = home.parent
    return file.parent if home == _OURS else home


def _imports(source: str, package: str) -> Iterator[str]:
    """Yield the absolute name of each module that *source* imports, or may import; within *package*."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield one.name
                if one.asname is None:
                    # What is bound is the outermost package.
                    yield one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):
                relative = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(relative, package or None)
                yield base
                yield from (f"{base}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Call) and (name := _named_module(node)) is not None:
            with suppress(ImportError):
                yield importlib.util.resolve_name(name, package or None)


def _named_module(call: ast.Call) -> str | None:
    """Return the name that `import_module` is called with; None where *call* is of anything else, or gives none."""
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else None
    if isinstance(called, ast.Name):
        name = called.id
    if name != "import_module" or not call.args:
        return None
    given = call.args[0]
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    return None


def _file_of(name: str) -> tuple[Path | None, str]:
    """Return where the module *name* lies, None for no module or one without a file, and its package."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        return (
            Path(file) if file else None,
            str(getattr(module, "__package__", None) or ""),
        )
    parent = name.rpartition(".")[0]
    if parent and not hasattr(sys.modules.get(parent), "__path__"):
        # Not to import a package that nobody has imported yet.
        return None, ""
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None and spec.has_location:
            return Path(spec.origin), spec.parent or ""
    return None, ""


@lru_cache(maxsize=256)
def _of_source(source: str) -> str:
    try:
        return _digest(ast.dump(ast.parse(source)))
    except RecursionError:
        # An expression of thousands of terms, which compiles: there every change counts.
        return _digest(source)


def _plain(code: CodeType) -> str:
    """Return what *code* does, without where it stands."""
    constants = [
        _plain(one) if isinstance(one, CodeType) else _ordered(one)
        for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def _ordered(constant: object) -> str:
    # The order of a set differs between processes.
    return (
        repr(sorted(map(repr, constant)))
        if isinstance(constant, frozenset)
        else repr(constant)
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST
    ).hexdigest()
