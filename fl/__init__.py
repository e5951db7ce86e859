"""Federated learning on one flat weight vector: models, data, masks, methods, training."""

import os

# Else MKL rounds a product by where its matrices lie in memory, and the result of a model depends
# on its place in a stack. MKL reads this at its first product.
os.environ.setdefault("MKL_CBWR", "AUTO")
