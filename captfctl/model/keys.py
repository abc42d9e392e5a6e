"""Labels, annotations, finalizers and field owners, as docs/reference/metadata.md lists them."""

# Labels and annotations of Cluster API that are read or written.
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
PAUSED = "cluster.x-k8s.io/paused"
MANAGED_BY = "cluster.x-k8s.io/managed-by"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
REMEDIATE = "cluster.x-k8s.io/remediate-machine"
REMEDIATION_REQUESTED = "captf.io/remediation-requested"
CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name"
WATCH_FILTER = "cluster.x-k8s.io/watch-filter"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
MOVE = "clusterctl.cluster.x-k8s.io/move"
BLOCK_MOVE = "clusterctl.cluster.x-k8s.io/block-move"

# Labels of what the manager creates.
MANAGED = "captf.io/managed"
OWNER_KIND = "captf.infrastructure.cluster.x-k8s.io/owner-kind"
OWNER_NAME = "captf.infrastructure.cluster.x-k8s.io/owner-name"
OP = "captf.infrastructure.cluster.x-k8s.io/op"
ATTEMPT = "captf.infrastructure.cluster.x-k8s.io/attempt"
LEASE = "captf.io/lease"
MIRRORED = "captf.io/mirrored"
IDENTITY_IN_USE = "captf.io/identity-in-use"
STATE_BACKUP = "captf.io/state-backup"
STATE_BACKUP_SUFFIX = "captf.io/state-backup-suffix"
UNSAVED_STATE = "captf.io/unsaved-state"
RETAINED_FROM_UID = "captf.io/retained-from-uid"

# Labels set by people.
VARIABLES = "captf.io/variables"
RUNNER = "captf.io/runner"

# Annotations of the objects.
ENDPOINT_SOURCE = "captf.io/endpoint-source"
RESTORE_STATE = "captf.io/restore-state"
CONFIRM_NO_RESOURCES = "captf.io/confirm-no-resources"
ACCEPT_STATE = "captf.io/accept-state"
LAST_STATE = "captf.io/last-state"
RECONCILE_REQUESTED = "captf.io/reconcile-requested"

# Annotations of Jobs (metadata.md: Annotations of Jobs).
INPUTS_HASH = "captf.io/inputs-hash"
APPROVAL_HASH = "captf.io/approval-hash"
PLAN = "captf.io/plan"
APPROVED_PLAN = "captf.io/approved-plan"
DRIFT_REMEDIATION = "captf.io/drift-remediation"
AFTER_FAILED_APPLY = "captf.io/after-failed-apply"
AFTER_INTERRUPTED_APPLY = "captf.io/after-interrupted-apply"
RESTORE_SERIAL = "captf.io/restore-serial"
STATE_LOCK_VERSION = "captf.io/state-lock-version"
IMAGE_FALLBACKS = "captf.io/image-fallbacks"
GENERATION = "captf.io/generation"
BOOKKEPT = "captf.io/bookkept"
INTERRUPTED = "captf.io/interrupted"
DESTRUCTIVE_PLAN_BLOCKED = "captf.io/destructive-plan-blocked"
PLAN_CHANGED = "captf.io/plan-changed"
PLAN_UNREADABLE = "captf.io/plan-unreadable"
PLAN_HASH = "captf.io/plan-hash"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"

# Annotations of Secrets and Leases (metadata.md: Annotations of Secrets and Leases).
IMAGE = "captf.io/image"
IMAGE_DIGEST = "captf.io/image-digest"
IDENTITY = "captf.io/identity"
IDENTITY_KIND = "captf.io/identity-kind"
JOB = "captf.io/job"
FIRST_APPLY = "captf.io/first-apply"
MAY_HAVE_APPLIED = "captf.io/may-have-applied"
APPLIED = "captf.io/applied"
INTERRUPTED_APPLY = "captf.io/interrupted-apply"
UNCONFIRMED_APPLY = "captf.io/unconfirmed-apply"  # read as INTERRUPTED_APPLY, never written
STATE_NOT_SAVED = "captf.io/state-not-saved"
UNPULLABLE_IMAGES = "captf.io/unpullable-images"
SOURCE_HASH = "captf.io/source-hash"
LEASE_OP = "captf.io/lease-op"
LEASE_ACQUIRED_AT = "captf.io/lease-acquired-at"
LEASE_JOB_REMOVED = "captf.io/lease-job-removed"

# What Terraform's `kubernetes` backend writes (state.md: State Secrets).
TFSTATE = "tfstate"
TFSTATE_SUFFIX = "tfstateSecretSuffix"
TFSTATE_WORKSPACE = "tfstateWorkspace"
LOCK_INFO = "app.terraform.io/lock-info"

# Labels of Kubernetes.
JOB_NAME = "batch.kubernetes.io/job-name"
HOSTNAME = "kubernetes.io/hostname"

# Finalizers.
STATE_PROTECTION = "captf.io/state-protection"
IDENTITY_PROTECTION = "captf.io/identity-protection"
UNREAD_RESULT = "captf.io/unread-result"
FOREGROUND_DELETION = "foregroundDeletion"
ORPHAN = "orphan"

FIELD_OWNER = "captf-manager"
TRUE = "true"
