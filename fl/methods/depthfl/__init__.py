"""DepthFL. Kim, Yu, Kim, Moon, "DepthFL: Depthwise Federated Learning for Heterogeneous Clients", ICLR 2023."""

from fl.methods.depthfl.depthfl import DepthFL

__all__ = ["DepthFL"]
