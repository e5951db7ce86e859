"""The same problems stated for cvxpy: the independent reference."""
