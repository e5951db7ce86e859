"""Loss and accuracy of the devices' models."""
