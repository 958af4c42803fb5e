"""Documents as files: JSON byte for byte, front matter, and the older Markdown form.

Here belongs reading and writing text; nothing here speaks to Redis.
"""
