"""What of a model's reading is believed: values that stand in the words, or in what is remembered of who asks."""
