"""What methods derive from: the base class, hyper-parameters, costs, state, aggregation."""
