"""The figures of a report by their section on the page."""
