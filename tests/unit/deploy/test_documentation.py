"""The pages of the site: where each stands, what its links become, and how pictures are drawn without a script."""

import re
from pathlib import Path

import pytest
import yaml

from deploy.documentation.__main__ import ROOT, write_pages
from deploy.documentation.flowcharts import NoChart, draw_charts, read_chart
from deploy.documentation.pages import make_anchor, place_links, place_of


@pytest.mark.parametrize(
    ("origin", "written", "placed"),
    [
        ("README.md", "[a](docs/guide/a.md#b)", "[a](guide/a.md#b)"),
        ("docs/README.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/guide/a.md", "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        ("docs/guide/a.md", "[a](../../examples/trip.py)", "a"),
        ("docs/guide/a.md", "[`a`](../../examples/trip.py)", "`a`"),
        ("docs/guide/a.md", "[a](../README.md)", "[a](../pages.md)"),
        ("docs/guide/a.md", "[a](b.md), [c](#d)", "[a](b.md), [c](#d)"),
        ("docs/guide/a.md", "[a](https://b.example)", "[a](https://b.example)"),
        ("docs/guide/a.md", "`[a](../../x.py)`", "`[a](../../x.py)`"),
        ("docs/guide/a.md", "```\n[a](../../x.py)\n```", "```\n[a](../../x.py)\n```"),
        ("README.md", '<img src="docs/images/a.png">', '<img src="images/a.png">'),
        ("docs/guide/a.md", "![a](../images/a.png)", "![a](../images/a.png)"),
    ],
)
def test_a_link_leads_to_the_same_page_of_the_site(
    origin: str, written: str, placed: str
) -> None:
    """One to a file that the site does not have is its text; code stays as it is."""
    assert place_links(written, origin) == placed


def test_a_file_beside_the_pages_has_no_place() -> None:
    assert place_of("examples/trip.py") is None
    assert place_of("docs/guide/a.md") == "guide/a.md"


def test_an_anchor_is_the_one_of_github() -> None:
    assert make_anchor("What waits, and why: `a_b`", "-") == "what-waits-and-why-a_b"


_CHAIN = '```mermaid\nflowchart LR\n  a["x.py<br/>First"]\n  b["y.py<br/>It\'s"]\n  a --> b\n```\n'
_LAYERS = (
    '```mermaid\nflowchart TD\n  a["a/<br/>top"]\n  b["b/<br/>left"]\n  c["c/<br/>right"]\n'
    '  d["d/<br/>last"]\n  a --> b\n  a --> c\n  b --> d\n  c --> d\n```\n'
)


def test_a_chain_is_a_list_in_its_order() -> None:
    drawn = draw_charts(_CHAIN)
    assert drawn == (
        '<ol class="chart"><li><code>x.py</code> First</li>'
        "<li><code>y.py</code> It&#x27;s</li></ol>\n"
    )


def test_a_flowchart_has_a_box_for_each_node_and_a_line_for_each_edge() -> None:
    """A node stands below all that lead to it."""
    drawn = draw_charts(_LAYERS)
    tops = [float(top) for top in re.findall(r'<rect x="[^"]+" y="([^"]+)"', drawn)]

    assert len(tops) == 4
    assert drawn.count('class="edge"') == 4
    assert tops[0] < tops[1] == tops[2] < tops[3]
    assert "mermaid" not in drawn


@pytest.mark.parametrize("line", ["a -.-> b", "c --> a"])
def test_a_picture_that_is_not_understood_is_refused(line: str) -> None:
    """A build that left something out would be believed."""
    with pytest.raises(NoChart):
        read_chart(f'flowchart TD\n  a["x"]\n  b["y"]\n  {line}\n')


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as `make docs` puts them together."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    write_pages(folder)
    return folder


def _named(entry: object) -> list[str]:
    match entry:
        case str():
            return [entry]
        case list():
            return [name for one in entry for name in _named(one)]
        case dict():
            return [name for one in entry.values() for name in _named(one)]
    return []


def test_the_navigation_names_every_page_once(pages: Path) -> None:
    """A page that no menu names is found by search alone; put a new one into `nav` of mkdocs.yml."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    read = yaml.safe_load(text.replace("!!python/name:", "!!str "))
    written = {file.relative_to(pages).as_posix() for file in pages.rglob("*.md")}

    assert sorted(_named(read["nav"])) == sorted(written)


def test_every_link_of_the_site_finds_its_file(pages: Path) -> None:
    """Without the builder, which is installed by `make docs` alone."""
    for file in pages.rglob("*.md"):
        text = re.sub(
            r"^```.*?^```$|`[^`\n]+`",
            "",
            file.read_text("utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
        for target in re.findall(r'\]\(([^)\s#]+)|(?:src|srcset)="([^"]+)"', text):
            path = "".join(target)
            assert "://" in path or (file.parent / path).exists(), f"{file}: {path}"


def test_no_page_needs_another_host_for_what_it_shows(pages: Path) -> None:
    """No picture, style or script of others; fonts are the system's."""
    read = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in read
    assert "://" not in re.sub(r"^#.*$", "", read, flags=re.MULTILINE)
    for file in pages.rglob("*.md"):
        shown = re.findall(
            r'(?:src|srcset)="https?:[^"]+|!\[[^\]]*\]\(https?:[^)]+',
            file.read_text("utf-8"),
        )
        assert shown == [], file.name
    [style] = pages.rglob("*.css")
    assert not re.search(r"@import|url\(", style.read_text("utf-8"))
