"""The endpoints of what is remembered of a user.

Here belongs reading documents and asking the memory agent for changes; nothing here edits a document.
"""
