"""Exact values and how people write them: numbers, money, percents, measures, durations, dates.

Pure values and readers belong here, with the standard library and pydantic alone; messages, fields and what a sentence
asks for do not.
"""
