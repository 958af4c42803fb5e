"""The endpoints of a user's memory.

They read documents and ask the memory agent for changes; nothing here edits a document.
"""
