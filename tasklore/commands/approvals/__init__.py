"""`tasklore approvals`: questions that tasks ask persons."""
