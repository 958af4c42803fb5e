"""The long-term memory: results by question, near matches, and single flight over processes.

Here belongs what is recalled and remembered by question; what is known of a task lies in `memory.ledger`.
"""
