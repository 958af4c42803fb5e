"""The site of the documentation: pages of the repository as pages of one site, and pictures that need no other host.

`make docs` builds it with what `requirements/docs.txt` pins. What a page says belongs into the page, not here.
"""
