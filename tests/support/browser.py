"""A headless Chromium for tests of pages, and what every page has to hold in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("SLOTSTEP_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
AA, AA_LARGE = 4.5, 3.0
"""Least contrasts of WCAG 2.2, success criterion 1.4.3: of text, and of large text."""

FAINT_TEXT = """
([least, large]) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colour, ground) => {
    canvas.fillStyle = `rgb(${ground.join()})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const above = [];
    for (let at = one; at; at = at.parentElement) above.unshift(getComputedStyle(at).backgroundColor);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    return above.reduce((ground, colour) => over(colour, ground), dark);
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const value = one.matches("input[type=text], select");
    const box = one.getBoundingClientRect();
    if (!(own || value) || one.closest("script, style, option") || !box.width || !box.height) continue;
    const style = getComputedStyle(one);
    if (style.visibility === "hidden" || [...(one.classList ?? [])].some((name) => name.startsWith("on-"))) continue;
    const ground = behind(one);
    const text = over(one.namespaceURI.endsWith("svg") ? style.fill : style.color, ground);
    const [low, high] = [light(text), light(ground)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const big = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast >= (big ? large : least)) continue;
    found.push(`${one.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return found;
}
"""
"""The texts whose contrast with their ground is too low; those on bars are left to the test of `readable_on`."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that nobody has used before; the test is skipped where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; set SLOTSTEP_CHROMIUM or install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


def messages(tab: Any) -> list[str]:
    """A list to which whatever a tab says from now on is added."""
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    return said


def check_layout(frame: Any, width: int) -> None:
    """A page or a frame is no wider than `width`, and its texts have the contrast of WCAG's level AA."""
    assert frame.evaluate("document.documentElement.scrollWidth") <= width
    assert frame.evaluate(FAINT_TEXT, [AA, AA_LARGE]) == []
