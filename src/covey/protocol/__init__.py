"""The pure core of a daemon. Nothing below this package touches sockets, clocks, randomness, threads or logs."""
