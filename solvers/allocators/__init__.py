"""The allocators, one file each."""
