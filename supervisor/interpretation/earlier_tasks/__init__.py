"""What a sentence takes from the tasks of its conversation: the same again, changed, doubled."""
