"""What troubles and measures real daemons: test clusters, a test network, soak, fuzz, benches, the demonstration."""
