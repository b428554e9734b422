"""Draws docs/report.png, the beginning of the page that `slotstep report` makes of three policies on chat.yaml.

    pip install playwright && apt-get install chromium && python examples/report.py

Chromium is looked for as `chromium` on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "report.png"
SIZE = (1240, 960)


def main() -> None:
    """Simulate, write the page, open it, and take a screenshot."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium on the path")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        slotstep("compare", str(HERE / "chat.yaml"), "--policies", "fcfs,sjf,fair", "--out", folder)
        slotstep("report", folder)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        tab.goto((Path(folder) / "report.html").as_uri())
        tab.screenshot(path=PICTURE)
        browser.close()
    print(PICTURE)


def slotstep(*arguments: str) -> None:
    """Run the command, discarding its output."""
    subprocess.run([sys.executable, "-m", "slotstep", *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()
