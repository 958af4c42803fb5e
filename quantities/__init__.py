"""Exact values and how people write them: numbers, money, percents, measures, durations, dates.

Pure values and readers belong here; messages, fields and what a sentence asks for do not.
"""
