"""Parameters of a task: the model, the key that its values make, and how far two values are apart.

Here belongs what a parameter is and how it is spelled; how people write values is `quantities`' business.
"""
