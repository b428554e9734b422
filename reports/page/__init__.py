"""The report as one self-contained HTML file, and its short form in Markdown."""
