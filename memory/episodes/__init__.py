"""Episodes: what was said, word for word, and the search over it.

Here belong the tokeniser, the ranking and the store of turns; what is concluded from them lies in `memory.documents`.
"""
