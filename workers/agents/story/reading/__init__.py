"""How prose is read without a model: sentences, speech, names, statements and what two of them have in common.

Pure: texts and entities in, findings out. What an agent makes of them is in `rules` and in the agents themselves.
"""
