"""What the agents answer when no model does: by words that are data, and by counting.

Pure, and the same for the same story; what text is made of, `reading` knows.
"""
