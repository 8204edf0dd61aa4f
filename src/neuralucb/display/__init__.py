"""What people look at: consoles, tables, figures, progress and pages. The only room that knows rich and matplotlib."""
