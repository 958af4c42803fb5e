"""Memory as text for a prompt, and that text recognised when it comes back. Pure: values in, text out.

Nothing here decides, stores or asks; a statement is shown as quoted data and can be nothing else.
"""
