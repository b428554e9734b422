"""What people look at: tables, figures, pages, and exports to other tools. Knows runs as data, simulates nothing."""
