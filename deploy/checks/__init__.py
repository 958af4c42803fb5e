"""Checks of everything that is deployed and not Python: `python -m deploy.checks`.

Each check is one module and prints one line. They need no cluster, and say what only a cluster could show.
"""
