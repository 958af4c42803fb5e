"""What an utterance takes from the conversation before it: answers to open questions, and values of earlier tasks.

Cutting, routing and filling an utterance by itself belong one room up.
"""
