"""JSON memory documents: paths into them, edits, what those changed, and the way back.

Pure functions over JSON values here, beside the store that keeps the documents; a body is never altered in place. No
language model, no broker: edits are proposed above, and no proposal is trusted.
"""
