"""Agents that exist only to be measured, written as a user would write them."""
