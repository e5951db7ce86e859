"""Charts of the page that react: their numbers, the script, and the library that draws them.

`uplot-1.6.32.min.js` and its style sheet are uPlot by Leon Sorokin, as published on npm (MIT,
uplot-LICENSE.txt); they stand in the page, which loads nothing.
"""
