"""The supervisor: the one process that starts a pod's container and outlives the node agent.

It runs as a program of its own (`captfctl.embedded.supervisor.main`), in its own session, so that
neither a Ctrl-C nor a `kill -9` of the agent reaches it. It owns the container's process tree: it
is the reaper of every orphan in it, it keeps the log, and it writes down how the container ended
only when the tree is proven empty. Standard library only, and little of it: it starts once per
container.
"""
