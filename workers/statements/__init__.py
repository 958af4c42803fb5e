"""Plain statements about oneself, read without a model: few patterns, closed lists, and nothing in doubt.

What is heard is what `table.toml` spells out. A model, where one is configured, reads everything instead.
"""

from workers.statements.reader import Statement, read

__all__ = ["Statement", "read"]
