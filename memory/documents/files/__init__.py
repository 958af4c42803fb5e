"""Documents as files: JSON byte for byte.

Here belongs reading and writing text; nothing here speaks to Redis.
"""
