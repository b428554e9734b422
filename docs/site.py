"""Hooks of the web site: files of the repository that a page links to are copied into it.

A page links to `../examples/chat.yaml`, which readers of the repository can follow. In the site the file lies
beside the pages, and the link leads there. A folder is shown as the list of its files.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(\.\./([^)#]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages link to outside of docs/. Raises FileNotFoundError for what is not there."""
    pages = [Path(config.docs_dir) / file.src_uri for file in files.documentation_pages()]
    linked = {name for page in pages for name in LINK.findall(page.read_text())}
    for name in sorted(linked):
        path = ROOT / name
        if path.is_dir():
            listing = "\n".join(f"- `{inner.name}`" for inner in sorted(path.iterdir()) if inner.is_file())
            made = File.generated(
                config, f"{name}.md", content=f"# {name}\n\n{listing}\n", inclusion=InclusionLevel.NOT_IN_NAV
            )
            files.append(made)
        elif path.exists():
            files.append(File.generated(config, name, abs_src_path=str(path)))
        else:
            raise FileNotFoundError(name)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links out of docs/ lead to the copies."""
    return LINK.sub(lambda found: f"]({found[1]}{'.md' if (ROOT / found[1]).is_dir() else ''})", markdown)
