"""Jobs: built, started, watched, counted and pruned; the leases that keep them apart (11)."""

from captfctl.jobs.bookkeeping import Bookkeeping, BooksInput, keep_books, mark_bookkept
from captfctl.jobs.build import RunnerSettings, build_job, build_run_secret
from captfctl.jobs.counting import CountedRun
from captfctl.jobs.failures import Failures
from captfctl.jobs.lag import Lag, check_lag
from captfctl.jobs.leases import LeaseClaim, Leases
from captfctl.jobs.owner import Owner
from captfctl.jobs.policy import SERVICE_ACCOUNT, failed_limit, policy_problem
from captfctl.jobs.reader import DoorJobs, JobsReader, own_jobs
from captfctl.jobs.results import FinishedRun, is_finished, next_attempt, op_of
from captfctl.jobs.run import RestoreSource, RunSpec
from captfctl.jobs.slots import SlotLimits, slot_wait
from captfctl.jobs.start import Deferred, Started, Starter
from captfctl.jobs.stuck import Stuck, StuckKind, check_stuck
from captfctl.jobs.waits import Wait, WaitReason

__all__ = [
    "SERVICE_ACCOUNT",
    "Bookkeeping",
    "BooksInput",
    "CountedRun",
    "Deferred",
    "DoorJobs",
    "Failures",
    "FinishedRun",
    "JobsReader",
    "Lag",
    "LeaseClaim",
    "Leases",
    "Owner",
    "RestoreSource",
    "RunSpec",
    "RunnerSettings",
    "SlotLimits",
    "Started",
    "Starter",
    "Stuck",
    "StuckKind",
    "Wait",
    "WaitReason",
    "build_job",
    "build_run_secret",
    "check_lag",
    "check_stuck",
    "failed_limit",
    "is_finished",
    "keep_books",
    "mark_bookkept",
    "next_attempt",
    "op_of",
    "own_jobs",
    "policy_problem",
    "slot_wait",
]
