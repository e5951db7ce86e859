"""Parts of a run that are not shipped: code of the user's, and of installed packages."""
