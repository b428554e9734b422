"""Outcomes of the checks of a baseline: as text, as JUnit XML, as Markdown, as annotations of a GitHub workflow."""
