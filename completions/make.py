"""`make completions`: the shell completions in this folder."""

from pathlib import Path

from typer.completion import get_completion_script

FILES = {"bash": "captfctl.bash", "zsh": "_captfctl", "fish": "captfctl.fish"}


def main() -> None:
    folder = Path(__file__).parent
    for shell, name in FILES.items():
        script = get_completion_script(
            prog_name="captfctl", complete_var="_CAPTFCTL_COMPLETE", shell=shell
        )
        (folder / name).write_text(script.strip() + "\n")


if __name__ == "__main__":
    main()
