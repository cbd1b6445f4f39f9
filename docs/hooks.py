"""For the site: the documents of the root become pages, and links that leave `docs/` are led to them.

On disk a page links to `../ARCHITECTURE.md` or `../../examples/chat.py`, so that links work where files are read as
files. The site has these documents as pages and these programs as files, under `source/`. And it fetches nothing: the
one script that the theme would take from elsewhere is beside the pages.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "STYLE.md": "style.md",
}
DECISIONS = ROOT / "docs" / "decisions"
OTHERS = {"README.md": "index.md", "LICENSE": "source/LICENSE"}
SOURCES = "examples"
SCRIPT = "https://unpkg.com/iframe-worker/shim"
SCRIPT_HERE = "iframe-worker.js"
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Every decision is a page of its own, without being listed twice."""
    _decisions(config.nav or []).extend(f"decisions/{path.name}" for path in sorted(DECISIONS.glob("[0-9]*.md")))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for document, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / document).read_text()))
    for path in [ROOT / "LICENSE", *sorted((ROOT / SOURCES).glob("*.py"))]:
        files.append(File.generated(config, f"source/{path.relative_to(ROOT)}", content=path.read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links in pages made of root documents start at the root, the others in `docs/`."""
    came_from = {page: document for document, page in PAGES.items()}.get(page.file.src_uri)
    home = PurePosixPath(came_from or f"docs/{page.file.src_uri}").parent
    here = PurePosixPath(page.file.src_uri).parent

    def led(match: re.Match[str]) -> str:
        opening, target, anchor, closing = match.groups()
        at_root = normpath(str(home / target))
        return f"{opening}{relpath(_in_site(at_root), str(here))}{anchor or ''}{closing}"

    return LINK.sub(led, markdown)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    return output.replace(SCRIPT, relpath(SCRIPT_HERE, str(PurePosixPath(page.url).parent)))


def _decisions(nav: list[Any]) -> list[str]:
    """The list under "Decisions", wherever it is."""
    for entry in nav:
        for title, below in entry.items() if isinstance(entry, dict) else []:
            if title == "Decisions":
                return cast("list[str]", below)
            if isinstance(below, list) and (found := _decisions(below)):
                return found
    return []


def _in_site(path: str) -> str:
    """Where the site has a file of the repository."""
    known = PAGES | OTHERS
    if path in known:
        return known[path]
    if path.startswith(f"{SOURCES}/"):
        return f"source/{path}"
    return path.removeprefix("docs/") if path != "docs" else "index.md"
