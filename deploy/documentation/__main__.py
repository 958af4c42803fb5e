"""Put the pages of the site together: `python -m deploy.documentation FOLDER`; `make docs` builds it from there."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from deploy.documentation.flowcharts import draw_charts
from deploy.documentation.pages import DOCS, PLACED, place_links, place_of

ROOT = Path(__file__).resolve().parents[2]
#: Where `extra_css` of mkdocs.yml looks for the style.
_STYLE = "assets/site.css"


def find_pages() -> Iterator[tuple[Path, str]]:
    """Yield each file of the site, with its place there."""
    inside = (file for file in sorted((ROOT / DOCS).rglob("*")) if file.is_file())
    beside = (ROOT / path for path in PLACED if not path.startswith(f"{DOCS}/"))
    for file in (*inside, *beside):
        place = place_of(file.relative_to(ROOT).as_posix())
        if place is not None:
            yield file, place
    yield Path(__file__).with_name("site.css"), _STYLE


def write_pages(folder: Path) -> None:
    """Write the files of the site into *folder*, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for file, place in find_pages():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            origin = file.relative_to(ROOT).as_posix()
            text = place_links(file.read_text("utf-8"), origin)
            target.write_text(draw_charts(text), "utf-8")
        else:
            shutil.copyfile(file, target)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
