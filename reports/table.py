"""What the command line prints: one run as a table, its ledger as a bar, several runs side by side."""

from reports.bar import ledger_bar
from reports.comparison import comparison_markdown, comparison_table
from reports.overview import summary_table

__all__ = ["comparison_markdown", "comparison_table", "ledger_bar", "summary_table"]
