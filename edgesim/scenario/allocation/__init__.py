"""Keys about who gets which band."""
