"""A script that turns files of remembered results into lines that `tasklore results import` reads.

Here belongs what reads such a file whole, `python -m examples.migrate_results FILE`; what a key in it says,
`tasklore.memory.long_term` knows.
"""
