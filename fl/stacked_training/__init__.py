"""Models of equal shape that are trained, or evaluated, as one stack of tensors [C, ...]."""
