"""Models as flat weight vectors: architectures, layers, and the layout that names their slices."""
