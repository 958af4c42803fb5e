"""How Tasklore is deployed: images, a compose file, configurations of its servers, and checks of all that.

Nothing here is shipped in the wheel, and no program of the house imports it.
"""
