"""FedLPS. Xue et al., "Learnable Sparse Customization in Heterogeneous Edge Computing", arXiv 2412.07216, 2024."""

from fl.methods.fedlps.fedlps import FedLPS

__all__ = ["FedLPS"]
