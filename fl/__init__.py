"""Federated learning on one flat weight vector: models, data, masks, methods, training."""
