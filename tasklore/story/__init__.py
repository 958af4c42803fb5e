"""`tasklore story`: the folder of a story, read, checked and loaded.

Here belongs the form of the files; what a story is, `contracts.analysis.stories` says.
"""
