"""Presentation of finished runs: console tables, figures, the HTML page, and exports to other tools."""
