"""The uplink's band among those that send at the moment."""
