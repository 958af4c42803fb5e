"""`tasklore stories`: the folder of a story, read and checked where the command runs.

Here belongs the form of the files; the models of a story are in `tasklore.contracts.analysis.stories`.
"""
