"""How rounds of a cell are planned: the problem, the threshold that fits, the grants."""
