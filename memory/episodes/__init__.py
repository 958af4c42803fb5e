"""Episodes: turns word for word, and the search over them.

Here belong the tokeniser, the ranking and the store of turns; conclusions from them lie in `tasklore.memory.documents`.
"""
