"""The reconcile pass: one module per step (reconcile.md: Order of a pass).

`passes.reconcile` is one pass of an object; `oneshot.evaluate` tells what the next one would
decide; `env.Env` holds everything a pass works with. Nothing is imported here: a command that only
asks what an object inherits does not load the pass.
"""
