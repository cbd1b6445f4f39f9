"""Order, stability and recovery of bundles, for a vector of sites; one site is the vector of length one."""
