"""The program inside every Job: runs a module step by step and leaves a small result."""
