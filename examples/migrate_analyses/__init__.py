"""A script that turns analyses in an older Markdown form into documents: `python -m examples.migrate_analyses FILE.md`.

Here belongs what reads that form; what a document is, `tasklore.contracts.analysis.document` says.
"""
