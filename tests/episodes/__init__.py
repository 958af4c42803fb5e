"""Chats that are made up, and what a search over them must find."""
