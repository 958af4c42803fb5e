"""What each role may do on NATS and Valkey: declared once here, written into their configuration, tried out by a test.

`operations.py` has a name for each thing that is done on NATS, `roles.py` says who does which, and `nats_accounts.py`
and `valkey_users.py` write that in the servers' words: `python -m deploy.privileges`.
"""
