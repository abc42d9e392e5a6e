#!/usr/bin/env python3
"""Build dist/runner: one static executable that needs nothing of the image it is put into.

The interpreter is Debian's own libpython, linked statically together with the two C modules it
keeps in shared libraries (_json, _ssl), the standard library modules the runner loads, and the
runner. Modules are frozen into the executable: nothing is unpacked at the start, and no file is
looked up.

Run as root, missing packages are installed with apt-get; otherwise they are named.
"""

import argparse
import ast
import datetime
import json
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple, NoReturn

REPOSITORY = Path(__file__).resolve().parents[1]
SYSTEM_PYTHON = "/usr/bin/python3"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Imported by the interpreter or by the standard library only when a run comes to it.
LATE_MODULES = (
    "encodings.ascii",
    "encodings.latin_1",
    "encodings.utf_16_be",
    "encodings.utf_8",
    "http.client",
    "ipaddress",
    "ssl",
    "traceback",
)
# The executable does without: it has its own way to become a subreaper, and is no archive.
NOT_NEEDED = ("ctypes", "zipfile")
C_MODULES = ("_json", "_ssl")


# Without OpenSSL's hashes, which the executable leaves out, hashlib wants all of its own.
HASHES = ("_md5", "_sha", "_blake2")
# Modules in C whose initialiser is not named after them.
INITIALISERS = {
    "builtins": "NULL",
    "sys": "NULL",
    "marshal": "PyMarshal_Init",
    "_warnings": "_PyWarnings_Init",
}


class Library(NamedTuple):
    """What of the standard library the runner comes to load."""

    files: dict[str, Path]
    builtin: list[str]


class Toolchain(NamedTuple):
    """Where the pieces of the system's Python are."""

    version: str
    headers: Path
    library: Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=REPOSITORY / "dist" / "runner")
    parser.add_argument("--cache", type=Path, default=REPOSITORY / "build" / "runner")
    options = parser.parse_args()
    _use_system_python()
    tools = _toolchain()
    options.cache.mkdir(parents=True, exist_ok=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    source = _python_source(tools, options.cache)
    objects = [_compile_c_module(name, source, tools, options.cache) for name in C_MODULES]
    with tempfile.TemporaryDirectory(prefix="captf-runner-") as scratch:
        _freeze(Path(scratch))
        _link(Path(scratch), objects, tools, options.output)
    _say(f"{options.output}: {options.output.stat().st_size / 1e6:.1f} MB")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"build-runner: {text}\n")


def _give_up(what: str, do: str) -> NoReturn:
    _say(f"{what}\nbuild-runner: {do}")
    sys.exit(3)


def _use_system_python() -> None:
    """Go on in the system's Python: frozen modules fit only the interpreter that made them."""
    if not Path("/etc/debian_version").exists() or not Path(SYSTEM_PYTHON).exists():
        _give_up(
            "the runner's executable is built on Debian, from Debian's own Python",
            "run this in a Debian container: deploy/Containerfile does",
        )
    if Path(sys.executable).resolve() != Path(SYSTEM_PYTHON).resolve() or sys.flags.isolated == 0:
        command = [SYSTEM_PYTHON, "-I", __file__, *sys.argv[1:]]
        os.execv(SYSTEM_PYTHON, command)  # noqa: S606


def _toolchain() -> Toolchain:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_config_var("LIBPL")) / f"libpython{version}.a"
    headers = Path(sysconfig.get_path("include"))
    libraries = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH"))
    needed = {
        f"libpython{version}-dev": [library, headers / "Python.h"],
        "libssl-dev": [libraries / "libssl.a"],
        "libexpat1-dev": [libraries / "libexpat.a"],
        "zlib1g-dev": [libraries / "libz.a"],
        "gcc": [Path("/usr/bin/gcc")],
        "libc6-dev": [libraries / "libc.a"],
        "dpkg-dev": [Path("/usr/bin/dpkg-source")],
    }
    missing = [name for name, files in needed.items() if not all(file.exists() for file in files)]
    if missing:
        _install(missing)
    return Toolchain(version, headers, library)


def _install(packages: list[str]) -> None:
    if os.geteuid() != 0:
        _give_up(
            f"packages are missing: {' '.join(packages)}",
            f"install them: apt-get install --no-install-recommends {' '.join(packages)}",
        )
    _say(f"installing {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", "-q", *command], check=True, env=environment, stdout=2)


def _python_source(tools: Toolchain, cache: Path) -> Path:
    """The unpacked source package of the system's Python; downloaded once."""
    unpacked = cache / f"python{tools.version}-source"
    if (unpacked / "Modules" / "_ssl.c").exists():
        return unpacked
    _say(f"downloading the source of python{tools.version}")
    with tempfile.TemporaryDirectory(prefix="captf-source-", dir=cache) as scratch:
        _download_source(Path(scratch), f"python{tools.version}")
        description = next(Path(scratch).glob("*.dsc"))
        shutil.rmtree(unpacked, ignore_errors=True)
        command = ["dpkg-source", "--no-check", "-x", description.name, "unpacked"]
        subprocess.run(command, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        (Path(scratch) / "unpacked").rename(unpacked)
    return unpacked


def _download_source(directory: Path, package: str) -> None:
    """Let apt-get fetch a source package without touching the machine's own settings."""
    sources = directory / "sources.list"
    sources.write_text("".join(f"deb-src {line}\n" for line in _binary_sources()))
    for part in ("lists/partial", "cache/archives/partial"):
        (directory / part).mkdir(parents=True)
    settings = [
        *("-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Cache={directory}/cache"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    subprocess.run(["apt-get", *settings, "update"], cwd=directory, check=False, stdout=2)
    for version in _source_versions(settings, package):
        command = ["apt-get", *settings, "source", "--download-only", f"{package}={version}"]
        if subprocess.run(command, cwd=directory, check=False, stdout=2).returncode == 0:
            return
    _give_up(
        f"the source of {package} could not be downloaded",
        "check that a Debian mirror of this machine can be reached and carries source packages",
    )


def _source_versions(settings: list[str], package: str) -> list[str]:
    """The versions on offer that have the system's Python as their origin, as apt sorts them."""
    command = ["apt-cache", *settings, "madison", package]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    versions = [line.split("|")[1].strip() for line in listed.splitlines()]
    upstream = sys.version.split()[0]
    return [version for version in versions if version.partition("-")[0] == upstream]


def _binary_sources() -> list[str]:
    """The machine's Debian mirrors, as one-line entries without their type."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)"]
    command += ["Created-By: Packages"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    signed = f"[signed-by={KEYRING}] " if Path(KEYRING).exists() else ""
    entries = set()
    for line in listed.splitlines():
        site, release, component = line.split()
        if component == "main" and "debian" in site:
            entries.add(f"{signed}{site} {release} main")
    return sorted(entries)


def _compile_c_module(name: str, source: Path, tools: Toolchain, cache: Path) -> Path:
    compiled = cache / f"{name}-{tools.version}.o"
    if compiled.exists():
        return compiled
    _say(f"compiling {name}")
    modules = source / "Modules"
    command = ["gcc", "-O2", "-fno-semantic-interposition", "-DPy_BUILD_CORE_BUILTIN"]
    command += ["-ffunction-sections", "-fdata-sections", "-fwrapv", "-w"]
    command += [f"-I{tools.headers}", f"-I{tools.headers}/internal", f"-I{modules}"]
    command += ["-include", REPOSITORY / "deploy" / "runner" / "no_bluetooth.h"]
    subprocess.run([*command, "-c", modules / f"{name}.c", "-o", compiled], check=True)
    return compiled


def _freeze(scratch: Path) -> None:
    """Write modules.bin and modules.h: the code of every module and the tables of them all."""
    library = _library()
    blob = bytearray()
    rows = []
    for name, (code, is_package) in sorted(_frozen_code(library).items()):
        rows.append(f'    {{"{name}", modules_bin + {len(blob)}, {len(code)}, {int(is_package)}}},')
        blob += code
    (scratch / "modules.bin").write_bytes(blob)
    hashes = [name for name in sys.builtin_module_names if name.startswith(HASHES)]
    builtin = sorted({*library.builtin, *hashes, *C_MODULES, "_runner_native"})
    initialisers = {name: INITIALISERS.get(name, f"PyInit_{name}") for name in builtin}
    (scratch / "modules.h").write_text(
        "extern const unsigned char modules_bin[];\n"
        "static const struct _frozen frozen_modules[] = {\n" + "\n".join(rows) + "\n"
        "    {NULL, NULL, 0, 0},\n};\n"
        + "".join(f"PyObject *{f}(void);\n" for f in initialisers.values() if f != "NULL")
        + "struct _inittab _PyImport_Inittab[] = {\n"
        + "".join(f'    {{"{name}", {f}}},\n' for name, f in initialisers.items())
        + "    {NULL, NULL},\n};\n"
    )
    (scratch / "modules.S").write_text(
        '    .section .rodata\n    .global modules_bin\nmodules_bin:\n    .incbin "modules.bin"\n'
        '    .section .note.GNU-stack,"",@progbits\n'
    )


def _runner_sources() -> dict[str, Path]:
    sources = {f"runner.{file.stem}": file for file in (REPOSITORY / "runner").glob("*.py")}
    sources["runner"] = sources.pop("runner.__init__")
    return sources


def _frozen_code(library: Library) -> dict[str, tuple[bytes, bool]]:
    """The marshalled code of the runner and of the library, and whether each is a package."""
    frozen = {
        name: (_code(file.read_bytes(), f"runner/{file.name}"), name == "runner")
        for name, file in _runner_sources().items()
    }
    frozen["runner._build"] = (_code(_build_stamp().encode(), "runner/_build.py"), False)
    for name, file in library.files.items():
        frozen[name] = (_code(file.read_bytes(), f"{name}.py"), file.name == "__init__.py")
    idna = REPOSITORY / "deploy" / "runner" / "ascii_idna.py"
    frozen["encodings.idna"] = (_code(idna.read_bytes(), "encodings.idna.py"), False)
    return frozen


def _code(source: bytes, file: str) -> bytes:
    # Docstrings and assertions are for those who read and change the code.
    return marshal.dumps(compile(source, file, "exec", dont_inherit=True, optimize=2))


def _imports(file: Path) -> set[str]:
    """The modules a file imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] != "runner"}


def _library() -> Library:
    """What is loaded for the runner's imports, asked of a fresh interpreter.

    Python files that every interpreter carries anyway are left out.
    """
    imported = set().union(*(_imports(file) for file in _runner_sources().values()))
    wanted = sorted((imported | set(LATE_MODULES)) - set(NOT_NEEDED))
    script = (
        "import _imp, importlib, json, sys\n"
        f"for name in {wanted!r}: importlib.import_module(name)\n"
        "carried = set(_imp._frozen_module_names())\n"
        "files = {name: str(getattr(module, '__file__', ''))"
        " for name, module in sys.modules.items() if name not in carried}\n"
        "files = {name: file for name, file in files.items() if file.endswith('.py')}\n"
        "builtin = [name for name in sys.builtin_module_names if name in sys.modules]\n"
        "print(json.dumps([files, builtin]))\n"
    )
    command = [SYSTEM_PYTHON, "-I", "-S", "-X", "frozen_modules=off", "-c", script]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    files, builtin = json.loads(listed)
    return Library({name: Path(file) for name, file in files.items()}, builtin)


def _build_stamp() -> str:
    """What `--version=raw` tells; the date is the commit's, so that builds can be repeated."""
    git = ["git", "-C", str(REPOSITORY)]
    commit, date, tree = "unknown", "unknown", "unknown"
    if shutil.which("git") and (REPOSITORY / ".git").exists():
        show = [*git, "log", "-1", "--format=%H %ct"]
        commit, stamp = subprocess.run(
            show, check=True, capture_output=True, text=True
        ).stdout.split()
        date = datetime.datetime.fromtimestamp(int(stamp), datetime.UTC).isoformat()
        status = [*git, "status", "--porcelain", "--", "runner", "deploy"]
        changed = subprocess.run(status, check=True, capture_output=True, text=True).stdout
        tree = "dirty" if changed else "clean"
    return f"COMMIT = {commit!r}\nTREE_STATE = {tree!r}\nDATE = {date!r}\n"


def _link(scratch: Path, objects: list[Path], tools: Toolchain, output: Path) -> None:
    _say("linking")
    command = ["gcc", "-static", "-O2", "-Wl,--gc-sections", "-s"]
    command += [f"-I{tools.headers}", f"-I{scratch}", REPOSITORY / "deploy" / "runner" / "main.c"]
    command += ["modules.S", *[path.resolve() for path in objects], tools.library]
    command += ["-lssl", "-lcrypto", "-lexpat", "-lz", "-lm", "-o", "runner"]
    done = subprocess.run(command, cwd=scratch, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        _give_up("linking failed:\n" + done.stderr, "the build packages may be of two releases")
    _try_out(scratch / "runner", scratch)
    # Put in place at once: a half-written executable is never seen under its name.
    fresh = output.with_name(output.name + ".new")
    shutil.copyfile(scratch / "runner", fresh)
    fresh.chmod(0o755)
    fresh.replace(output)


def _try_out(program: Path, scratch: Path) -> None:
    """Let it load everything it can come to load: a module left out shows here, not in a Job."""
    (scratch / "ca.crt").touch()
    result = scratch / "result"
    arguments = ["--op=plan", "--module=/nonexistent", f"--result={result}"]
    done = subprocess.run(
        [program, "run", *arguments, "--event-object=v1/Pod/namespace/name/uid"],
        check=False,
        capture_output=True,
        text=True,
        env={
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": "1",
            "CAPTF_SERVICE_ACCOUNT_DIR": str(scratch),
        },
    )
    told = "holds no usable certificate" in done.stderr
    if done.returncode != 1 or not told or '"image-layout"' not in result.read_text():
        _give_up("the executable does not work:\n" + done.stderr, "a module may be left out")


if __name__ == "__main__":
    sys.exit(main())
