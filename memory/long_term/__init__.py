"""The long-term memory: results by question, near matches, and single flight over processes.

Results by question belong here; the state of tasks lies in `tasklore.memory.ledger`.
"""
