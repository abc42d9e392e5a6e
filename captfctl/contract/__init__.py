"""The contract between the manager and a module: inputs, rendering, hashes, outputs (30, 60)."""

from captfctl.contract.admission import check_cluster, check_described
from captfctl.contract.build import (
    ClusterBuild,
    EndpointSourceChange,
    build_cluster_inputs,
    endpoint_input_was_null,
)
from captfctl.contract.effective import (
    ClusterConfig,
    Flags,
    OwnSettings,
    WorkerConfig,
    cluster_config,
    machine_config,
    merge_jobs,
    pool_config,
)
from captfctl.contract.errors import (
    ContractError,
    InputsTooLarge,
    VariablesError,
    VariablesSourceNotFound,
)
from captfctl.contract.hashing import approval_hash, exports_hash, inputs_hash
from captfctl.contract.mapping import ClusterMapping, infrastructure_healthy, map_cluster
from captfctl.contract.outputs import ClusterOutputs, RawOutputs, decode_cluster
from captfctl.contract.render import RenderedFiles, render, render_restore
from captfctl.contract.roles import Role
from captfctl.contract.values import ClusterInputs, ContractInputs, MachineInputs, MachinePoolInputs
from captfctl.contract.variables import (
    SourceKind,
    SourceRef,
    UserVariable,
    UserVariables,
    merge_variables,
    source_refs,
)

__all__ = [
    "ClusterBuild",
    "ClusterConfig",
    "ClusterInputs",
    "ClusterMapping",
    "ClusterOutputs",
    "ContractError",
    "ContractInputs",
    "EndpointSourceChange",
    "Flags",
    "InputsTooLarge",
    "MachineInputs",
    "MachinePoolInputs",
    "OwnSettings",
    "RawOutputs",
    "RenderedFiles",
    "Role",
    "SourceKind",
    "SourceRef",
    "UserVariable",
    "UserVariables",
    "VariablesError",
    "VariablesSourceNotFound",
    "WorkerConfig",
    "approval_hash",
    "build_cluster_inputs",
    "check_cluster",
    "check_described",
    "cluster_config",
    "decode_cluster",
    "endpoint_input_was_null",
    "exports_hash",
    "infrastructure_healthy",
    "inputs_hash",
    "machine_config",
    "map_cluster",
    "merge_jobs",
    "merge_variables",
    "pool_config",
    "render",
    "render_restore",
    "source_refs",
]
