"""Which code a task's results were computed by, as a few characters of the memory's keys."""

import ast
import hashlib
import inspect
import linecache
import warnings
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

#: Bytes; twice as many characters in every key. Few edits are made within one time to live.
_DIGEST = 4


def code_digest(function: Callable[..., Any], label: str) -> str:
    """Return 8 hexadecimal digits of the module that *function* lives in, its own source included.

    Formatting and comments do not count; docstrings do, since those of classes are part of what models are asked.
    What other modules hold is not seen. A function without readable source (typed into an interpreter, frozen) warns
    and counts by its own compiled code alone. *label* names it there.
    """
    function = inspect.unwrap(function)
    file = function.__code__.co_filename
    linecache.checkcache(file)
    source = "".join(linecache.getlines(file, getattr(function, "__globals__", None)))
    try:
        if source:
            return _of_source(source)
    except SyntaxError:
        # What lies there is not what was compiled.
        pass
    warnings.warn(
        f"{label}: its source cannot be read, so that only edits of the function itself leave remembered results "
        "behind; raise its version when anything else of them changes",
        stacklevel=5,
    )
    return _digest(_plain(function.__code__))


@lru_cache(maxsize=16)
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
