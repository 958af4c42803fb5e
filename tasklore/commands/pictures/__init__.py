"""Pictures: views that a table or facts would show badly, drawn each by a module of its name.

Each has `draw(view) -> str`, which gets a view that steers no terminal, and may have `code_of(view) -> int` when an end
of its operation is no success. Nothing else belongs here, and nothing here asks a server.
"""
