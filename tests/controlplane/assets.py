"""Where the binaries of a real control plane are: found, or built from pinned Go modules.

Every folder beside this file with a `go.mod` pins one tool. What is built goes into a cache folder
named by the hash of the pins, outside the checkout, so that only the first run on a machine pays.
`KUBEBUILDER_ASSETS` (envtest's convention) may name a folder with some of them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KUBERNETES_VERSION = "v1.34.4"
_VERSION = "k8s.io/component-base/version"
_KUBERNETES_FLAGS = (
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} "
    f"-X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34"
)
TIME_PROVIDER_VERSION = "0.14.2"


@dataclass(frozen=True)
class Tool:
    """One binary: the module folder that pins it, its package, and what the tests need it for."""

    binary: str
    module: str
    package: str
    purpose: str
    ldflags: str = "-s -w"


TOOLS = (
    Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", "the API server's storage"),
    *(
        Tool(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", purpose, _KUBERNETES_FLAGS)
        for name, purpose in (
            ("kube-apiserver", "the real API server"),
            ("kube-controller-manager", "the real Job controller and garbage collector"),
            ("kube-scheduler", "the real scheduler"),
        )
    ),
    Tool("cluster-api-manager", "cluster-api", "sigs.k8s.io/cluster-api", "real Cluster API"),
    Tool("tofu", "opentofu", "github.com/opentofu/opentofu/cmd/tofu", "runs with OpenTofu"),
    Tool(
        f"terraform-provider-time_v{TIME_PROVIDER_VERSION}",
        "provider-time",
        "github.com/hashicorp/terraform-provider-time",
        "runs with a real provider",
    ),
)

ALL = frozenset(tool.binary for tool in TOOLS)
CLUSTER = frozenset(
    tool.binary for tool in TOOLS if tool.module in ("etcd", "kubernetes", "cluster-api")
)
"""What a control plane with Cluster API consists of."""


GO_CLIENT = Tool("go-client", "go-client", ".", "the calls of Kubernetes' Go clients")
"""Built on its own: it is tried against the embedded API server, too."""


class AssetsMissingError(Exception):
    """Some binaries are neither there nor can they be built: which, and what they are for."""


@dataclass(frozen=True)
class Assets:
    """Paths of everything the tests start."""

    binaries: dict[str, Path]
    cluster_api_crds: Path
    provider_mirror: Path

    def __getitem__(self, binary: str) -> Path:
        return self.binaries[binary]


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "captfctl" / "control-plane"


def _module_cache(module: str) -> Path:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((HERE / module / name).read_bytes())
    for source in sorted((HERE / module).glob("*.go")):
        digest.update(source.read_bytes())
    return cache_root() / f"{module}-{digest.hexdigest()[:12]}"


def _existing(tool: Tool) -> Path | None:
    given = os.environ.get("KUBEBUILDER_ASSETS")
    candidates = [Path(given) / tool.binary] if given else []
    candidates.append(_module_cache(tool.module) / tool.binary)
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def find(needed: Collection[str] = ALL) -> Assets:
    """The assets without building anything. Raises `AssetsMissingError` when a needed one lacks."""
    paths = {tool.binary: _existing(tool) for tool in TOOLS}
    lacking = _lacking(needed)
    crds = _module_cache("cluster-api") / "crds"
    if lacking or not crds.is_dir():
        raise AssetsMissingError(_explain(lacking))
    present = {name: path for name, path in paths.items() if path is not None}
    return Assets(present, crds, _module_cache("provider-time") / "mirror")


def _explain(lacking: Sequence[Tool]) -> str:
    lines = [f"  {tool.binary}: {tool.purpose}" for tool in lacking]
    return "\n".join(
        [
            "parts of the real control plane are missing:",
            *(lines or ["  the CRDs of Cluster API"]),
            "build them with `make control-plane` (needs Go 1.24 or later; ten minutes, once)",
            "or name a folder that has kube-apiserver and etcd in KUBEBUILDER_ASSETS",
        ]
    )


def _lacking(needed: Collection[str]) -> list[Tool]:
    return [tool for tool in TOOLS if tool.binary in needed and _existing(tool) is None]


def build(needed: Collection[str] = ALL) -> Assets:
    """Build what is missing, then `find`. Raises `AssetsMissingError` when there is no Go."""
    lacking = _lacking(needed)
    if lacking and shutil.which("go") is None:
        raise AssetsMissingError(_explain(lacking))
    with _one_builder("lock"):
        for tool in _lacking(needed):
            _build_tool(tool)
        _copy_cluster_api_crds()
        if TOOLS[-1].binary in needed:
            _make_provider_mirror()
    return find(needed)


def go_client() -> Path:
    """The program, built when it is not there yet. Raises `AssetsMissingError`."""
    if _existing(GO_CLIENT) is None:
        if shutil.which("go") is None:
            raise AssetsMissingError("Kubernetes' Go clients are tried where Go is on PATH")
        with _one_builder(f"{GO_CLIENT.module}.lock"):
            if _existing(GO_CLIENT) is None:
                _build_tool(GO_CLIENT)
    found = _existing(GO_CLIENT)
    assert found is not None
    return found


@contextmanager
def _one_builder(name: str) -> Iterator[None]:
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_tool(tool: Tool) -> None:
    print(f"building {tool.binary} ({tool.purpose})", file=sys.stderr, flush=True)
    target = _module_cache(tool.module) / tool.binary
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{tool.binary}.partial")
    _go(
        tool.module,
        "build",
        "-ldflags",
        tool.ldflags,
        "-o",
        str(partial),
        tool.package,
    )
    partial.replace(target)


def _go(module: str, *arguments: str) -> str:
    command = ["go", *arguments]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    done = subprocess.run(
        command, cwd=HERE / module, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise AssetsMissingError(f"`{' '.join(command)}` failed in {HERE / module}")
    return done.stdout.strip()


def _copy_cluster_api_crds() -> None:
    target = _module_cache("cluster-api") / "crds"
    if target.is_dir():
        return
    source = Path(_go("cluster-api", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api"))
    partial = target.with_name(".crds.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for file in (source / "config" / "crd" / "bases").glob("*.yaml"):
        shutil.copyfile(file, partial / file.name)
    partial.replace(target)


def _make_provider_mirror() -> None:
    """A file-system mirror with the provider for both runtimes' registries."""
    binary = _existing(TOOLS[-1])
    assert binary is not None
    platform = f"{_go('provider-time', 'env', 'GOOS')}_{_go('provider-time', 'env', 'GOARCH')}"
    for registry in ("registry.terraform.io", "registry.opentofu.org"):
        folder = _module_cache("provider-time") / "mirror" / registry / "hashicorp" / "time"
        target = folder / TIME_PROVIDER_VERSION / platform / binary.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(binary, target)
