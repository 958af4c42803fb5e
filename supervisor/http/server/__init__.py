"""The HTTP server in the supervisor's process: TLS, timeouts and its log.

Here belongs what uvicorn is given; what a request may do is `supervisor.http.admission`'s business.
"""
