"""Path losses that change over time and come from elsewhere: a measured trace, or own code."""
