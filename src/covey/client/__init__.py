"""The client library: a program's way to a daemon. `covey.connect` and `covey.blocking.connect` are its two doors."""
