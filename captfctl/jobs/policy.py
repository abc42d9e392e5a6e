"""Constants of every Job's pod that no policy changes (11 §4)."""

GRACE_SECONDS = 600
STOP_TIMEOUT_SECONDS = GRACE_SECONDS - 30  # the runner needs the rest to report
