"""Sites and sectors in the plane, drops of devices, and the gains between them."""
