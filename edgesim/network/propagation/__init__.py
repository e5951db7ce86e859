"""Large-scale propagation: path loss, walls, shadowing and K factor by position."""
