"""`tasklore limits check`, the one command on limits that asks no server."""
