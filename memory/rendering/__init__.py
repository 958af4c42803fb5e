"""What is remembered as text for a prompt, and that text recognised when it comes back. Pure: values in, text out.

Nothing here decides, stores or asks; whatever somebody said once is shown as quoted data and can be nothing else.
"""
