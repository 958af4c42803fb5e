"""What a sentence says for the fields of one task, each value with the characters it was read from; no guesses."""
