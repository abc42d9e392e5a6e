"""`captfctl manage`: the controller process."""

from typing import Annotated

import typer

from captfctl.cli.options import Kubeconfig, Verbosity


def command(
    kubeconfig: Kubeconfig = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", metavar="NAME", help="Reconcile this namespace only; empty: all."
        ),
    ] = "",
    watch_filter: Annotated[
        str,
        typer.Option(
            "--watch-filter",
            metavar="VALUE",
            help="Reconcile only objects whose label cluster.x-k8s.io/watch-filter is this.",
        ),
    ] = "",
    runner_image: Annotated[
        str,
        typer.Option(
            "--runner-image",
            envvar="CAPTF_MANAGER_IMAGE",
            metavar="REF",
            help="Image that holds the runner, as /runner.",
        ),
    ] = "",
    runner_events: Annotated[bool, typer.Option(help="Let runners post progress events.")] = True,
    sync_period: Annotated[
        str,
        typer.Option(
            "--sync-period", metavar="DURATION", help="How often every object is looked at again."
        ),
    ] = "10m",
    drift_default_interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How often objects that name no interval are checked for drift.",
        ),
    ] = "30m",
    cluster_operation_gate: Annotated[
        bool, typer.Option(help="Never change a cluster and one of its machines at the same time.")
    ] = True,
    max_active_jobs: Annotated[
        int, typer.Option(metavar="N", help="Jobs at a time; 0: no limit.")
    ] = 200,
    cluster_max_active_jobs: Annotated[
        int, typer.Option(metavar="N", help="Jobs at a time for one cluster; 0: no limit.")
    ] = 20,
    terraformcluster_concurrency: Annotated[
        int, typer.Option(metavar="N", help="TerraformClusters reconciled at a time.")
    ] = 10,
    terraformclusteridentity_concurrency: Annotated[
        int, typer.Option(metavar="N", help="TerraformClusterIdentities reconciled at a time.")
    ] = 4,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Work only while holding the leader's Lease.")
    ] = False,
    leader_elect_lease_duration: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="How long others wait for a leader that went silent."
        ),
    ] = "15s",
    leader_elect_renew_deadline: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="How long the leader tries to renew its Lease before it ends."
        ),
    ] = "10s",
    leader_elect_retry_period: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Time between tries to acquire or renew the Lease."),
    ] = "2s",
    health_addr: Annotated[
        str, typer.Option(metavar="ADDR", help="Address of /healthz and /readyz; empty: off.")
    ] = ":9440",
    diagnostics_address: Annotated[
        str, typer.Option(metavar="ADDR", help="Address of /metrics; empty: off.")
    ] = ":8443",
    insecure_diagnostics: Annotated[
        bool,
        typer.Option(
            "--insecure-diagnostics", help="Serve /metrics over plain HTTP, to everybody."
        ),
    ] = False,
    tls_min_version: Annotated[
        str,
        typer.Option(
            metavar="VERSION", help="Lowest TLS version of /metrics: VersionTLS12 or VersionTLS13."
        ),
    ] = "VersionTLS12",
    logging_format: Annotated[
        str,
        typer.Option("--logging-format", metavar="FORMAT", help="Form of the log: text or json."),
    ] = "text",
    verbosity: Verbosity = 2,
) -> None:
    """Run the controller against an API server until SIGTERM.

    Finds the API server by --kubeconfig, then $KUBECONFIG, then the pod's ServiceAccount.
    """
    from captfctl.cli.options import duration
    from captfctl.cli.run_manager import manager_identity, own_namespace, run_manager
    from captfctl.manager.settings import ManagerSettings

    settings = ManagerSettings(
        runner_image=runner_image,
        namespace=namespace,
        watch_filter=watch_filter,
        sync_period=duration(sync_period, "--sync-period"),
        terraformcluster_concurrency=terraformcluster_concurrency,
        terraformclusteridentity_concurrency=terraformclusteridentity_concurrency,
        health_addr=health_addr,
        leader_elect=leader_elect,
        leader_elect_lease_duration=duration(
            leader_elect_lease_duration, "--leader-elect-lease-duration"
        ),
        leader_elect_renew_deadline=duration(
            leader_elect_renew_deadline, "--leader-elect-renew-deadline"
        ),
        leader_elect_retry_period=duration(
            leader_elect_retry_period, "--leader-elect-retry-period"
        ),
        runner_events=runner_events,
        drift_default_interval=duration(drift_default_interval, "--drift-default-interval"),
        cluster_operation_gate=cluster_operation_gate,
        max_active_jobs=max_active_jobs,
        cluster_max_active_jobs=cluster_max_active_jobs,
        diagnostics_address=diagnostics_address,
        insecure_diagnostics=insecure_diagnostics,
        tls_min_version=tls_min_version,
        lease_namespace=own_namespace(),
        identity=manager_identity(),
    )
    raise typer.Exit(run_manager(settings, kubeconfig, logging_format, verbosity))
