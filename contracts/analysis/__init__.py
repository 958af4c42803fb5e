"""The analysis of one response of a story: its document, its messages, who finds what, and what a story is.

Here belongs what crosses the wire and lies in files; how an analysis is driven and folded does not.
"""
