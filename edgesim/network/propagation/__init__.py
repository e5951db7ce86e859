"""Large-scale propagation: where devices stand, and what path loss and shadowing follow."""
