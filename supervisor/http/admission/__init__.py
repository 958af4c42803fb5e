"""Admission: the middleware that checks host, key, rights, rate and size before a route runs.

Here belongs what refuses a request; what answers one is a module of routes.
"""
