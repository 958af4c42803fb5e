"""The endpoints of requests in words: ask, follow events, look up the outcome, cancel.

The way of one request over HTTP belongs here; understanding its words does not.
"""
