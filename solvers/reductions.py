"""Sums and extremes of arrays [K]: the methods of an array do the same, but for ten devices they take twice as long."""

import numpy as np

total, largest, smallest = np.add.reduce, np.maximum.reduce, np.minimum.reduce
some, every = np.logical_or.reduce, np.logical_and.reduce
