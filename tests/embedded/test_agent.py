"""The node agent: pods as process trees of this machine (local-mode.md: The node agent)."""

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from captfctl.embedded.agent.containers import Container
from captfctl.embedded.supervisor import processes
from captfctl.errors import EnvironmentFault
from captfctl.model.resource import Document
from captfctl.model.resources import JOBS, LEASES, NODES, PODS, SECRETS
from tests.embedded.node_support import IMAGE, Plane, plane_in
from tests.embedded.support import NAMESPACE, conditions, create, exists, job, until


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    with plane_in(tmp_path) as plane:
        yield plane


# The node.


def test_the_node_registers_is_ready_and_renews_its_lease(plane: Plane) -> None:
    node = plane.door.get(NODES, "node")
    ready = next(c for c in node.status.conditions if c["type"] == "Ready")
    assert ready["status"] == "True"
    assert "cpu" in node.status.capacity
    assert {"type": "Hostname", "address": "node"} in node.status.addresses
    lease = plane.door.get(LEASES, "node", "kube-node-lease")
    assert lease.spec.holder_identity == "node"
    assert lease.spec.lease_duration_seconds == 40
    assert lease.metadata.owner_references[0].uid == node.metadata.uid


def test_the_lease_is_renewed_while_the_agent_lives(tmp_path: Path) -> None:
    with plane_in(tmp_path) as plane:
        plane.agent.stop()
        plane.agent = plane.new_agent(renew_interval=0.05)
        plane.agent.start()
        first = plane.door.get(LEASES, "node", "kube-node-lease").spec.renew_time
        until(lambda: plane.door.get(LEASES, "node", "kube-node-lease").spec.renew_time > first)


def test_a_node_that_was_taken_for_dead_is_ready_with_its_next_renewal(tmp_path: Path) -> None:
    """As after an API server that hung: not only with the status written every five minutes."""

    def ready() -> str:
        conditions = plane.door.get(NODES, "node").status.conditions
        return next(c["status"] for c in conditions if c["type"] == "Ready")

    with plane_in(tmp_path) as plane:
        plane.agent.stop()
        plane.agent = plane.new_agent(renew_interval=0.05)
        plane.agent.start()
        unknown = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        change = {"status": {"conditions": unknown}}
        plane.door.patch(NODES, "node", "", change, subresource="status")
        until(lambda: ready() == "True")


def test_a_second_agent_on_the_same_directory_is_refused(plane: Plane) -> None:
    with pytest.raises(EnvironmentFault, match="another node agent") as caught:
        plane.new_agent().start()
    assert caught.value.where == str(plane.base / "node")


def test_a_directory_that_cannot_be_written_is_one_clear_error(plane: Plane) -> None:
    plane.base.joinpath("file").write_text("")
    agent = plane.new_agent()
    agent._data_dir = plane.base / "file" / "below"
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        agent.start()


# From bound to ended.


def test_a_pod_runs_and_succeeds(plane: Plane) -> None:
    plane.run("p", "echo hello; uname -n")
    pod = plane.wait_phase("p", "Succeeded", "Failed")
    assert pod.status.phase == "Succeeded"
    ended = plane.terminated("p")
    assert (ended.exit_code, ended.reason) == (0, "Completed")
    assert ended.started_at is not None
    assert ended.finished_at is not None
    status = pod.status.container_statuses[0]
    assert status.image == IMAGE
    assert status.image_id.startswith("docker-pullable://example.com/a@sha256:")
    assert pod.metadata.annotations["captf.io/memory-limit-by"] == "none"
    by = pod.metadata.annotations["captf.io/hostname-by"]
    name = os.uname().nodename if by == "lock-attribution" else "p"
    assert plane.log("p") == f"hello\n{name}\n"


def test_a_job_runs_to_its_end(plane: Plane) -> None:
    create(plane.door, JOBS, job("run", "exit 0"))
    until(lambda: "Complete" in conditions(plane.door, "run"))
    create(plane.door, JOBS, job("bad", "exit 3"))
    until(lambda: "Failed" in conditions(plane.door, "bad"))


def test_a_failing_container_fails_the_pod_with_its_code(plane: Plane) -> None:
    plane.run("p", "exit 7")
    plane.wait_phase("p", "Failed")
    assert (plane.terminated("p").exit_code, plane.terminated("p").reason) == (7, "Error")


def test_conditions_follow_the_pod(plane: Plane) -> None:
    plane.run("p", "read line; exit 0", container={"command": ["/bin/sleep", "300"]})
    pod = plane.wait_phase("p", "Running")
    assert {c.type: c.status for c in pod.status.conditions} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }


def test_an_image_that_the_table_has_not_keeps_the_pod_waiting_until_it_is_added(
    plane: Plane,
) -> None:
    plane.run("p", container={"image": "example.com/unknown:v1"})
    until(lambda: plane.waiting("p")[0] in ("ErrImagePull", "ImagePullBackOff"))
    _, message = plane.waiting("p")
    assert "not found" in message
    assert "{module: DIRECTORY}" in message
    assert plane.phase("p") == "Pending"
    until(lambda: plane.waiting("p")[0] == "ImagePullBackOff")
    entry = plane.images.entry(IMAGE)
    assert entry is not None
    plane.images.add("example.com/unknown:v1", entry)
    plane.wait_phase("p", "Succeeded")


def test_a_missing_secret_is_waited_for(plane: Plane) -> None:
    plane.run(
        "p",
        "cat /captf/config/main.tf.json",
        container={
            "command": ["/bin/cat", "/captf/config/main.tf.json"],
            "volumeMounts": [{"name": "config", "mountPath": "/captf/config"}],
        },
        volumes=[{"name": "config", "secret": {"secretName": "run", "defaultMode": 0o440}}],
    )
    until(lambda: plane.events("FailedMount"))
    assert 'secret "run" not found' in plane.events("FailedMount")[0]
    assert plane.waiting("p") == ("ContainerCreating", "")
    create(plane.door, SECRETS, {"metadata": {"name": "run"}, "stringData": {"main.tf.json": "{}"}})
    plane.wait_phase("p", "Succeeded")
    assert plane.log("p") == "{}\n"


def test_a_missing_secret_of_the_environment_is_a_config_error(plane: Plane) -> None:
    plane.run("p", container={"envFrom": [{"secretRef": {"name": "creds"}}]})
    until(lambda: plane.waiting("p")[0] == "CreateContainerConfigError")
    assert 'secret "creds" not found' in plane.waiting("p")[1]
    create(plane.door, SECRETS, {"metadata": {"name": "creds"}, "stringData": {"A": "b"}})
    plane.wait_phase("p", "Succeeded")


def test_a_program_that_is_not_there_fails_the_container(plane: Plane) -> None:
    plane.run("p", container={"command": ["/no/such/program"]})
    plane.wait_phase("p", "Failed")
    assert plane.terminated("p").reason == "ContainerCannotRun"
    assert "/no/such/program" in plane.terminated("p").message


def test_files_and_directories_have_the_modes_asked_for(plane: Plane) -> None:
    create(plane.door, SECRETS, {"metadata": {"name": "s"}, "stringData": {"key": "value"}})
    plane.run(
        "p",
        "echo ready; sleep 300",
        volumes=[
            {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o440}},
            {"name": "work", "emptyDir": {}},
        ],
        container={
            "volumeMounts": [
                {"name": "s", "mountPath": "/captf/config"},
                {"name": "work", "mountPath": "/captf/work"},
            ]
        },
    )
    plane.wait_log("p", "ready")
    root = plane.directory("p") / "root" / "captf"
    assert stat.S_IMODE((root / "config" / "key").stat().st_mode) == 0o440
    assert (root / "work").is_dir()
    assert (root / "module" / "main.tf").is_file()
    assert not (root / "module").is_symlink()
    kubeconfig = plane.directory("p") / "api" / "kubeconfig"
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert "shared-token" not in kubeconfig.read_text()
    assert stat.S_IMODE(plane.directory("p").stat().st_mode) == 0o700


def test_environment_paths_and_references_are_those_of_this_machine(plane: Plane) -> None:
    create(
        plane.door,
        SECRETS,
        {"metadata": {"name": "creds"}, "stringData": {"CREDS": "/var/run/captf/k", "B": "secret"}},
    )
    plane.run(
        "p",
        python=True,
        script=(
            "import os, json, time; print(json.dumps(dict(os.environ)), flush=True); "
            "time.sleep(300)"
        ),
        volumes=[
            {"name": "work", "emptyDir": {}},
            {"name": "creds", "secret": {"secretName": "creds"}},
        ],
        container={
            "envFrom": [{"secretRef": {"name": "creds"}}],
            "env": [
                {"name": "HOME", "value": "/captf/work"},
                {"name": "B", "value": "explicit-$(CREDS)-$$(B)-$(NONE)"},
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "volumeMounts": [
                {"name": "work", "mountPath": "/captf/work"},
                {"name": "creds", "mountPath": "/var/run/captf"},
            ],
        },
    )
    plane.wait_log("p", "\n")
    env = json.loads(plane.log("p"))
    root = plane.directory("p") / "root"
    assert env["HOME"] == str(root / "captf/work")
    assert env["CREDS"] == str(root / "var/run/captf/k")
    assert env["B"] == f"explicit-{root}/var/run/captf/k-$(B)-$(NONE)"
    assert env["POD"] == env["HOSTNAME"] == "p"
    assert (env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]) == ("127.0.0.1", "6443")
    access = Path(env["CAPTF_SERVICE_ACCOUNT_DIR"])
    assert (access / "token").read_text() == "shared-token"
    assert (access / "ca.crt").read_text() == "certificate"
    assert (access / "namespace").read_text() == NAMESPACE
    assert set(env) <= {
        "PATH", "HOME", "CREDS", "B", "POD", "HOSTNAME", "LC_CTYPE", "CAPTF_POD_UID",
        "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "CAPTF_SERVICE_ACCOUNT_DIR",
    }  # fmt: skip


def test_a_pod_this_node_cannot_run_is_failed_and_told_why(plane: Plane) -> None:
    plane.run("p", restartPolicy="Always")
    pod = plane.wait_phase("p", "Failed")
    assert pod.status.reason == "UnsupportedPod"
    assert "restartPolicy" in pod.status.message


# Ends.


def test_deleting_sends_sigterm_and_waits_for_the_grace_period(plane: Plane) -> None:
    plane.run(
        "p",
        python=True,
        script="import signal, sys, time\n"
        "def stop(*_): print('stopping', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('ready', flush=True)\ntime.sleep(300)",
        terminationGracePeriodSeconds=60,
    )
    plane.wait_log("p", "ready")
    directory = plane.directory("p")
    log = directory / "containers" / "source" / "0.log"
    plane.door.patch(PODS, "p", NAMESPACE, {"metadata": {"finalizers": ["example.com/keep"]}})
    plane.door.delete(PODS, "p", NAMESPACE)
    plane.wait_phase("p", "Succeeded")
    assert "stopping" in log.read_text()
    plane.door.patch(PODS, "p", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(plane.door, PODS, "p"))
    until(lambda: not directory.exists())


def test_what_ignores_sigterm_is_killed_as_a_tree_after_the_grace_period(plane: Plane) -> None:
    plane.run(
        "p",
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo inner; while :; do sleep 1; done' & "
        "echo ready; while :; do sleep 1; done",
        terminationGracePeriodSeconds=1,
    )
    plane.wait_log("p", "inner")
    plane.wait_log("p", "ready")
    uid, directory = plane.pod("p").metadata.uid, plane.directory("p")
    plane.door.delete(PODS, "p", NAMESPACE)
    until(lambda: not exists(plane.door, PODS, "p"))
    assert processes.belonging(f"CAPTF_POD_UID={uid}") == []
    until(lambda: not directory.exists())


def test_a_pod_deleted_before_it_started_never_starts(plane: Plane) -> None:
    plane.run(
        "p",
        "touch started",
        volumes=[{"name": "v", "secret": {"secretName": "missing"}}],
    )
    until(lambda: plane.events("FailedMount"))
    uid = plane.pod("p").metadata.uid
    plane.door.delete(PODS, "p", NAMESPACE)
    until(lambda: not exists(plane.door, PODS, "p"))
    until(lambda: not (plane.base / "node" / "pods" / uid).exists())


def test_the_pods_own_deadline_ends_it(plane: Plane) -> None:
    plane.run("p", "sleep 300", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
    pod = plane.wait_phase("p", "Failed")
    assert pod.status.reason == "DeadlineExceeded"
    assert plane.terminated("p").exit_code == 143


def test_the_jobs_deadline_ends_pod_and_job(plane: Plane) -> None:
    create(plane.door, JOBS, job("run", "sleep 300", activeDeadlineSeconds=1))
    until(lambda: conditions(plane.door, "run").get("Failed") == "DeadlineExceeded")
    assert plane.door.list(PODS, NAMESPACE).items == []


def test_a_pod_whose_object_vanished_is_killed_and_cleaned_up(plane: Plane) -> None:
    plane.run("p", "sleep 300")
    plane.wait_phase("p", "Running")
    uid, directory = plane.pod("p").metadata.uid, plane.directory("p")
    plane.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=0)
    until(lambda: not processes.belonging(f"CAPTF_POD_UID={uid}"))
    until(lambda: not directory.exists())


def test_more_memory_than_the_limit_is_an_oom_kill(plane: Plane) -> None:
    plane.run(
        "p",
        python=True,
        script="import time\nkeep = b'x' * (96 * 1024 * 1024)\ntime.sleep(300)",
        container={"resources": {"limits": {"memory": "48Mi"}}},
    )
    pod = plane.wait_phase("p", "Failed")
    assert (plane.terminated("p").reason, plane.terminated("p").exit_code) == ("OOMKilled", 137)
    assert pod.metadata.annotations["captf.io/memory-limit-by"] in ("cgroup", "watchdog")


def test_shutting_down_ends_all_pods_and_writes_why(plane: Plane) -> None:
    plane.run("p", "sleep 300")
    plane.wait_phase("p", "Running")
    assert plane.agent.shut_down(5)
    pod = plane.pod("p")
    assert (pod.status.phase, pod.status.reason) == ("Failed", "Terminated")
    ready = next(c for c in plane.door.get(NODES, "node").status.conditions if c["type"] == "Ready")
    assert ready["status"] == "False"


# Termination messages and logs.


def test_the_log_stands_in_for_a_missing_message_when_asked(plane: Plane) -> None:
    plane.run(
        "p",
        "echo first; echo last; exit 1",
        container={"terminationMessagePolicy": "FallbackToLogsOnError"},
    )
    plane.wait_phase("p", "Failed")
    assert plane.terminated("p").message == "first\nlast"


@pytest.mark.parametrize("end", ["by itself", "deleted", "unstarted"])
def test_of_a_pod_that_ended_only_log_result_and_exit_record_stay(plane: Plane, end: str) -> None:
    create(
        plane.door,
        SECRETS,
        {"metadata": {"name": "s"}, "type": "Opaque", "stringData": {"k": "t0p-s3cr3t"}},
    )
    create(plane.door, PODS, leaving_pod(missing="missing" if end == "unstarted" else "s"))
    if end == "unstarted":
        until(lambda: plane.waiting("p")[0] == "ContainerCreating")
    else:
        plane.wait_log("p", "ready")
    directory = plane.directory("p")
    assert holding(directory, "t0p-s3cr3t") != []
    if end == "by itself":
        (directory / "root" / "go").touch()
    else:
        plane.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=1)
    plane.wait_phase("p", "Failed")
    assert {path.name for path in directory.iterdir()} <= {"containers", "record.json"}
    assert holding(directory, "t0p-s3cr3t") == []
    if end != "unstarted":
        assert plane.log("p") == "ready\n"
        assert plane.terminated("p").message == "told"
    plane.door.patch(PODS, "p", NAMESPACE, {"metadata": {"finalizers": None}})


def test_what_a_killed_agent_left_of_a_pod_that_ended_goes_too(plane: Plane) -> None:
    plane.run("p")
    plane.wait_phase("p", "Succeeded")
    assert plane.agent.stop(10)
    left = plane.directory("p") / "root" / "captf"
    left.mkdir(parents=True)
    (left / "terraform.tfvars.json").write_text("{}")
    plane.agent = plane.new_agent()
    plane.agent.start()
    until(lambda: not left.parent.exists())
    assert plane.log("p") == ""


def test_a_pod_that_was_declared_dead_while_no_agent_ran_is_ended(plane: Plane) -> None:
    """As Kubernetes does with the pods of a node whose Node object is deleted."""
    plane.run("p", "echo ready; sleep 300")
    plane.wait_log("p", "ready")
    uid = plane.pod("p").metadata.uid
    assert plane.agent.stop(10)
    pod = plane.pod("p")
    pod.status.phase = "Failed"
    plane.door.update(PODS, pod, subresource="status")
    assert processes.belonging(f"CAPTF_POD_UID={uid}")
    plane.agent = plane.new_agent(kill_wait=0.5)
    plane.agent.start()
    until(lambda: not processes.belonging(f"CAPTF_POD_UID={uid}"))
    until(lambda: not (plane.directory("p") / "root").exists())


def leaving_pod(missing: str) -> Document:
    """A pod that is kept when it is deleted, with a Secret, plans, a module and odd modes."""
    script = (
        "cp secret/k plan; mkdir -p locked/below; cp plan locked/below; chmod 500 locked; "
        "printf told > ../containers/source/termination-log; "
        "echo ready; "
        "trap 'exit 1' TERM; while [ ! -e go ]; do sleep 0.05; done; exit 1"
    )
    volumes = [
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "other", "secret": {"secretName": missing}},
    ]
    mounts = [{"name": "secret", "mountPath": "/secret"}, {"name": "other", "mountPath": "/other"}]
    container = {
        "name": "source",
        "image": IMAGE,
        "command": ["/bin/sh", "-c", script],
        "volumeMounts": mounts,
    }
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    metadata = {"name": "p", "finalizers": ["example.com/kept"]}
    return {"metadata": metadata, "spec": spec}


def holding(directory: Path, text: str) -> list[Path]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return [path for path in files if text in path.read_text(errors="replace")]


def test_logs_can_be_cut_stamped_and_followed(plane: Plane) -> None:
    plane.run("p", "seq 1 5; sleep 300")
    plane.wait_log("p", "5")
    assert plane.log("p", tail_lines=2) == "4\n5\n"
    assert plane.log("p", limit_bytes=3) == "1\n2"
    stamp, _, rest = plane.log("p", timestamps=True, tail_lines=1).partition(" ")
    assert rest == "5\n"
    assert abs((datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()) < 60
    assert plane.log("p", since_seconds=3600).count("\n") == 5
    followed = plane.agent.open(NAMESPACE, "p", "source", follow=True)
    pieces = iter(followed)
    assert next(pieces) == b"1\n2\n3\n4\n5\n"
    plane.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=1)
    assert list(pieces) == []


def test_a_followed_log_can_be_closed(plane: Plane) -> None:
    plane.run("p", "echo one; sleep 300")
    plane.wait_log("p", "one")
    followed = plane.agent.open(NAMESPACE, "p", "source", follow=True)
    pieces = iter(followed)
    assert next(pieces) == b"one\n"
    followed.close()
    assert list(pieces) == []


# Crashes.


def test_a_new_agent_adopts_what_still_runs(plane: Plane) -> None:
    plane.run("p", "echo start; while [ ! -e go ]; do sleep 0.05; done; echo end; exit 4")
    plane.wait_log("p", "start")
    before = Container(plane.directory("p") / "containers" / "source", "x").supervisor
    plane.replace_agent()
    (plane.directory("p") / "root" / "go").touch()
    plane.wait_phase("p", "Failed")
    assert plane.terminated("p").exit_code == 4
    assert plane.log("p") == "start\nend\n"
    assert before is not None


def test_what_ended_while_no_agent_was_there_is_not_lost(plane: Plane) -> None:
    plane.run("p", "echo start; while [ ! -e go ]; do sleep 0.05; done; exit 4")
    plane.wait_phase("p", "Running")
    directory = plane.directory("p")
    plane.agent.stop()
    (directory / "root" / "go").touch()
    until(lambda: (directory / "containers" / "source" / "exit.json").exists())
    assert plane.phase("p") == "Running"
    plane.agent = plane.new_agent()
    plane.agent.start()
    plane.wait_phase("p", "Failed")
    assert plane.terminated("p").exit_code == 4


def test_a_killed_supervisor_fails_the_pod_honestly_and_leaves_nothing(plane: Plane) -> None:
    plane.run("p", "setsid sleep 300 & echo ready; sleep 300")
    plane.wait_log("p", "ready")
    plane.wait_phase("p", "Running")
    supervisor = Container(plane.directory("p") / "containers" / "source", "x").supervisor
    assert supervisor is not None
    processes.send(supervisor, 9)
    plane.wait_phase("p", "Failed")
    assert plane.processes("p") == []
    assert plane.terminated("p").exit_code == 137
    assert "supervised" in plane.terminated("p").message


def test_a_supervisor_killed_while_no_agent_was_there_too(plane: Plane) -> None:
    plane.run("p", "setsid sleep 300 & echo ready; sleep 300")
    plane.wait_log("p", "ready")
    plane.agent.stop()
    supervisor = Container(plane.directory("p") / "containers" / "source", "x").supervisor
    assert supervisor is not None
    processes.send(supervisor, 9)
    plane.agent = plane.new_agent()
    plane.agent.start()
    plane.wait_phase("p", "Failed")
    assert plane.processes("p") == []


def test_a_killed_main_process_takes_its_tree_with_it(plane: Plane) -> None:
    plane.run("p", "setsid sleep 300 & echo ready; sleep 300")
    plane.wait_log("p", "ready")
    main = Container(plane.directory("p") / "containers" / "source", "x").running
    assert main is not None
    os.kill(main.pid, 9)
    plane.wait_phase("p", "Failed")
    assert plane.processes("p") == []
    assert (plane.terminated("p").exit_code, plane.terminated("p").signal) == (137, 9)


def test_pods_deleted_while_no_agent_was_there_are_ended_and_cleaned_up(plane: Plane) -> None:
    plane.run("p", "sleep 300")
    plane.wait_phase("p", "Running")
    uid, directory = plane.pod("p").metadata.uid, plane.directory("p")
    plane.agent.stop()
    plane.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=0)
    plane.agent = plane.new_agent()
    plane.agent.start()
    until(lambda: not directory.exists())
    assert processes.belonging(f"CAPTF_POD_UID={uid}") == []
