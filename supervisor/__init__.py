"""The supervisor: understands a person's text, assigns tasks to the agents it has heard of, and answers.

It learns agents from their cards and never imports one; computing an answer belongs to `workers`.
"""
