"""The command line with the operations of a small document."""

from tests.operations_fixtures import own_operations as own_operations
from tests.operations_fixtures import run_command as run_command
