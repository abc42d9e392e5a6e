"""Every step sees the environment the runner was given, less what is dropped, and nothing else."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from captfctl.embedded.agent.runner_file import launcher, place_runner
from tests.runner.harness import REPOSITORY, Job
from tests.runner.test_executable import EXECUTABLE, why_not_built

DROPPED = (
    *("TF_LOG", "TF_VAR_x", "TF_CLI_ARGS", "KUBE_TOKEN", "KUBE_CTX", "TERRAFORM_CONFIG"),
    *("XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME"),
)
KEPT = (
    *("LC_ALL", "LC_CTYPE", "LANG", "LANGUAGE", "PYTHONPATH", "PYTHONOPTIMIZE"),
    *("PWD", "OLDPWD", "SHLVL", "_", "TFX", "TF_INPUT", "TF_IN_AUTOMATION", "KUBE_NAMESPACE"),
    *("KUBERNETES_SERVICE_HOST", "HOSTNAME", "XDG_CACHE_HOME", "A b", "ä"),
)
SET = {"HOME", "TF_DATA_DIR"}
LOCALES = st.sampled_from(["", "C", "POSIX", "C.UTF-8", "C.utf8", "en_US.ISO-8859-1", "no-such"])
TEXTS = LOCALES | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
VARIABLES = st.dictionaries(st.sampled_from(KEPT + DROPPED), TEXTS, max_size=6)

Program = Callable[[Path], Sequence[str | Path]]


def _module(_: Path) -> list[str]:
    return [sys.executable, "-m", "runner"]


def _executable(_: Path) -> list[Path]:
    return [EXECUTABLE]


def _of_the_node_agent(scratch: Path) -> list[Path]:
    place_runner(scratch / "runner", None)
    return [scratch / "runner"]


def _of_an_agent_in_a_directory_with_spaces(scratch: Path) -> list[Path]:
    python = scratch / "a python"
    python.symlink_to(sys.executable)
    program = scratch / "runner"
    program.write_text(launcher(str(python)))
    program.chmod(0o755)
    return [program]


PROGRAMS = [
    _module,
    pytest.param(
        _executable,
        marks=pytest.mark.skipif(bool(why_not_built()), reason=why_not_built() or "-"),
    ),
    _of_the_node_agent,
]


def _seen(program: Program, more: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What the runner is given, and what a step of it sees."""
    with tempfile.TemporaryDirectory(prefix="captf-given-") as directory:
        job = Job(Path(directory))
        environ = {**job.environ, **more}
        dump = "open(sys.argv[0] + '.seen', 'wb').write(open('/proc/self/environ', 'rb').read())"
        runtime = Path(directory) / "runtime"
        runtime.write_text(f"#!{sys.executable} -IS\nimport sys\n{dump}\n")
        runtime.chmod(0o755)
        flags = [flag for flag in job.flags("--op=refresh") if not flag.startswith("--bin")]
        command = [*program(Path(directory)), *flags, f"--bin={runtime}"]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environ, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        entries = os.fsdecode(Path(f"{runtime}.seen").read_bytes()).split("\0")[:-1]
        pairs = [entry.partition("=") for entry in entries]
        assert len(pairs) == len({name for name, _, _ in pairs})
        return environ, {name: value for name, _, value in pairs}


def _expected(environ: dict[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environ.items() if name not in DROPPED and name not in SET
    }


@pytest.mark.parametrize("program", PROGRAMS)
@settings(max_examples=4)
@given(more=VARIABLES)
@example(more={})
@example(more={"LC_ALL": "C"})
@example(more={"LC_CTYPE": "C"})
@example(more={"LC_CTYPE": "C.UTF-8", "PWD": "/elsewhere", "SHLVL": "3", "_": "x"})
@example(more=dict.fromkeys(DROPPED, "x"))
def test_a_step_sees_what_the_runner_was_given_less_what_is_dropped(
    program: Program, more: dict[str, str]
):
    environ, seen = _seen(program, more)
    assert seen.keys() >= SET
    assert {name: value for name, value in seen.items() if name not in SET} == _expected(environ)


def test_a_python_whose_path_no_kernel_takes_as_an_interpreter_adds_nothing_either():
    environ, seen = _seen(_of_an_agent_in_a_directory_with_spaces, {})
    assert {name: value for name, value in seen.items() if name not in SET} == _expected(environ)
