"""The supervisor: understands a person's text, assigns tasks to the agents it has heard of, and answers.

It learns agents from their cards and never imports one; computing an answer belongs to `workers`.
"""

if __name__ != "tasklore.supervisor":
    raise ImportError(
        f"{__name__!r} is a folder of the package; import 'tasklore.supervisor'"
    )
