"""What a run records: spans, tables, summary, and the folder that keeps them."""
