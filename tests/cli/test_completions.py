"""Shell completions are what `make completions` makes, and they complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAPTFCTL = Path(sys.executable).with_name("captfctl")


def test_the_committed_completions_are_the_made_ones(tmp_path):
    made = {
        name.name: name.read_text() for name in (ROOT / "completions").iterdir() if name.is_file()
    }
    copy = tmp_path / "make.py"
    copy.write_text((ROOT / "completions" / "make.py").read_text())
    subprocess.run([sys.executable, copy], check=True)

    for name in ("captfctl.bash", "_captfctl", "captfctl.fish"):
        assert (tmp_path / name).read_text() == made[name]


@pytest.mark.parametrize(
    ("words", "wanted"), [("captfctl reco", "reconcile"), ("captfctl reconcile --dry", "--dry-run")]
)
def test_bash_completes_commands_and_flags(words, wanted):
    environment = os.environ | {
        "_CAPTFCTL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([CAPTFCTL], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.split() == [wanted]
