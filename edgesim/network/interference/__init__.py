"""Sectors that share one band: uploads that disturb each other, planned sector by sector."""
