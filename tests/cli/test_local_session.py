"""Which image table counts."""

from captfctl.cli.local_session import images_that_count
from captfctl.clock import SystemClock
from captfctl.embedded.layout import IMAGES, STORE
from captfctl.embedded.store import EmbeddedStore


def table(folder, name, reference):
    (folder / "module").mkdir(exist_ok=True)
    (folder / "module" / "main.tf").write_text("")
    (folder / name).write_text(f"{reference}:\n  module: module\n")
    return folder / name


def test_a_stopped_control_plane_takes_the_table_it_is_given(tmp_path):
    given = table(tmp_path, "given.yaml", "example.com/given:v1")

    assert images_that_count(tmp_path / "data", given).references == ["example.com/given:v1"]


def test_a_running_control_plane_has_the_table_of_who_runs_it(tmp_path):
    given = table(tmp_path, "given.yaml", "example.com/given:v1")
    owned = table(tmp_path, "owned.yaml", "example.com/owned:v1")
    data = tmp_path / "data"
    store = EmbeddedStore.open(data / STORE, SystemClock())
    (data / IMAGES).write_text(str(owned))

    assert images_that_count(data, given).references == ["example.com/owned:v1"]
    store.close()
