"""The endpoints that clients of OpenAI's API call.

Here belongs their form and errors; what answers is the service behind every door.
"""
