"""Keys of a device's processor, battery and modem."""
