"""`tasklore story`: the folder of a story, read, checked and loaded.

Here belongs the form of the files; the models of a story are in `tasklore.contracts.analysis.stories`.
"""
