"""What the command line prints: one run as a table, its ledger as a bar, several runs side by side."""

from reports.text.bar import ledger_bar
from reports.text.comparison import comparison_markdown, comparison_table
from reports.text.overview import summary_table

__all__ = ["comparison_markdown", "comparison_table", "ledger_bar", "summary_table"]
