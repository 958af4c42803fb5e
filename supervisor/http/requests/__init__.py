"""The endpoints of requests in words: ask, follow events, look up the outcome, cancel.

Here belongs the way of one request over HTTP; how words are understood does not.
"""
