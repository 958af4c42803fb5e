"""Declarations of pipelines: reading them from files, checking them, and resolving their references and conditions.

Here belongs everything that depends only on a declaration, its inputs, its cards and the files it watches; running
phases belongs to the modules above.
"""
