"""Admission: the middleware that checks host, key, rights, rate and size before a route runs.

Code that refuses a request belongs here; code that answers one is a module of routes.
"""
