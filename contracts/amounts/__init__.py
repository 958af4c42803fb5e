"""Exact values with a meaning: one value for every spelling of it, and never a float inside."""

from contracts.amounts.amount import Amount, wire_form
from contracts.amounts.spellings import canonical

__all__ = ["Amount", "canonical", "wire_form"]
