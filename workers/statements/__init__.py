"""Plain statements about oneself, read without a model: few patterns, closed lists, and nothing in doubt.

`table.toml` spells out every wording. A model, where one is configured, reads everything instead.
"""

from tasklore.workers.statements.reader import Attitude, Statement, attitude_of, read

__all__ = ["Attitude", "Statement", "attitude_of", "read"]
