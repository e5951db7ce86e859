"""An allocator of one's own: band in proportion to what each device has left to send. Run it with

edgesim run examples/own_allocator.yaml --allow-code
"""


def proportional(problem):
    """Shares in proportion to the seconds that each upload would take alone; then the least
    pruning that is in time.
    """
    alone_s = problem.bits / problem.rate_bps
    share = alone_s / alone_s.sum()
    return share, problem.rho_at(share)
