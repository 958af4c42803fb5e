"""The memory of a person, an agent, a run or an organisation: its turns, documents and their history.

Documents are read here and changed by tasks of the memory agent; with an operator's rights by functions that are lent.
"""
