"""The wire: messages, parameters and subjects, and the errors of the domain.

Pure pydantic and standard library. Anything that opens a socket, awaits or remembers belongs elsewhere.
"""

if __name__ != "tasklore.contracts":
    raise ImportError(
        f"{__name__!r} is a folder of the package; import 'tasklore.contracts'"
    )
