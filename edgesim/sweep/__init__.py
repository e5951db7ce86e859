"""Every combination of some keys, in parallel, once.

values.py  what is written on the command line or in a sweep block -> values; ranges.py  range(...), log(...)
points.py  values -> checked points                        code.py    the code that decides their results
folder.py  the sweep's folder: points by content, sweep.json                      work.py    one point, in any process
local.py   processes of this machine      cluster.py  workers of dask.distributed   control.py  who runs what, when
view.py    what is shown                  estimate.py how long it takes
"""
