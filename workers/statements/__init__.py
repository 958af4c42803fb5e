"""What both memory agents know of language: statements and their parts, normal forms, and what is a kind of what.

Pure: text in, values out. Words and patterns are data (`data/*.toml`); no store, no model and no clock belongs here.
"""
