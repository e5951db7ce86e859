"""What methods derive from: base class, hyper-parameters, costs, state, aggregation."""
