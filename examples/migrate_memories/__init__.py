"""A script that turns memories in an older Markdown form into documents: `python -m examples.migrate_memories FOLDER`.

Here belongs what reads that form; what a document is, `tasklore.memory.documents` says.
"""
