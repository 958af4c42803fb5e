"""Write the golden files anew: run it on purpose, and look at what git shows."""

from tests.golden.document import make_document
from tests.golden.frozen import write

write("openapi.json", make_document())
