"""Reports: event log in, tables, figures and one page out. Nothing here runs a simulation or a latency formula."""
