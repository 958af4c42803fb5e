"""Writing the project: the template files with names filled in, and the manifests that `tasklore k8s agent` prints."""

import contextlib
import keyword
import re
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.workers.loading import GROUP

#: What each file is called; `{module}` is the name as Python spells it.
_FILES = {
    "agent.py.txt": "{module}.py",
    "test_agent.py.txt": "test_{module}.py",
    "pyproject.toml.txt": "pyproject.toml",
    "Dockerfile.txt": "Dockerfile",
    "README.md.txt": "README.md",
}


def write_project(name: str) -> None:
    """Write the project *name* into a new folder of that name, and print what to do next.

    Raises:
        InvalidInput: *name* cannot be that of a package or is taken, or the folder is there and not empty.
        ConfigurationError: a file cannot be written.
    """
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or not re.fullmatch(
        r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", name
    ):
        raise InvalidInput(
            f"NAME {name!r} cannot name a package; use up to 40 of a-z, 0-9 and '-', such as my-agent"
        )
    if _is_taken(name, module):
        raise InvalidInput(
            f"NAME {name!r} is that of a package or an agent that is installed here; choose another, such as my-{name}"
        )
    folder = Path(name)
    names = {
        "name": name,
        "module": module,
        "agent": f"{module.title().replace('_', '')}Agent",
    }
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInput(
                f"the folder {name!r} is not empty; choose another NAME, or empty it"
            )
        written = ["k8s.yaml"]
        for template in files("tasklore.commands.init").joinpath("template").iterdir():
            text = Template(template.read_text("utf-8")).substitute(names)
            file_name = _FILES[template.name].format(module=module)
            (folder / file_name).write_text(text, "utf-8")
            written.append(file_name)
        (folder / "k8s.yaml").write_text(
            _manifests(folder, f"./{module}.py", f"{name}:0.1.0"), "utf-8"
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {str(folder)!r}: {error.strerror or error}"
        ) from error
    print(f"Wrote {', '.join(sorted(written))} in {folder}/")
    print(f"Next: cd {name}; pytest; tasklore up --agents ./{module}.py")


def _is_taken(name: str, module: str) -> bool:
    """Return whether Python or Tasklore finds something else under *module* or *name*."""
    if module in sys.stdlib_module_names or module == "tasklore":
        return True
    spec = find_spec(module)
    # A folder without Python files, as one that is made for the project, is a package without an origin.
    return (spec is not None and spec.origin is not None) or bool(
        {name, module} & entry_points(group=GROUP).names
    )


def _manifests(folder: Path, reference: str, image: str) -> str:
    from tasklore.commands.k8s.printing import agent_text
    from tasklore.commands.k8s.workers import Wanted

    # References mean the same here as in the image only from the folder itself.
    with contextlib.chdir(folder):
        return agent_text(Wanted(references=(reference,), image=image))
