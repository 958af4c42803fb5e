"""Operations: everything that can be asked of the system, each said once, with the role that it needs.

Knows no door: HTTP, the command line and clients are made from the table (`tasklore.supervisor.http.mount`).
"""
