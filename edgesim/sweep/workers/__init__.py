"""Where points of a sweep are carried out: processes of this machine, or workers of dask."""
