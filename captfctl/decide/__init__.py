"""The pure decision: what an object needs next. No I/O, no clock, no globals."""
