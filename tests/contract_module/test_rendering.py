"""The rendered root (module-contract.md: The rendered root module)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.interface import INPUTS, REQUIRED_OUTPUTS
from captfctl.terraform.contract.errors import ContractError, InputsTooLarge, VariablesError
from captfctl.terraform.contract.jsontext import parse
from captfctl.terraform.contract.render import SIZE_LIMIT, render, render_restore
from captfctl.terraform.contract.variables import UserVariable
from tests.contract_module.objects import cluster_inputs, machine_inputs, pool_inputs

ALL = [cluster_inputs(), machine_inputs(), pool_inputs()]


def documents(inputs, variables=None):
    files = render(inputs, variables or {})
    return json.loads(files.main_tf_json), json.loads(files.tfvars_json)


def test_a_cluster_is_not_told_of_its_own_outputs():
    files = render(cluster_inputs(), {})
    assert b"captf_cluster_outputs" not in files.main_tf_json + files.tfvars_json


def test_every_required_output_is_read_as_sensitive():
    for inputs in ALL:
        main, _ = documents(inputs)
        assert main["output"] == {
            name: {"value": f"${{module.role.{name}}}", "sensitive": True}
            for name in REQUIRED_OUTPUTS[inputs.role]
        }
    assert len(REQUIRED_OUTPUTS[cluster_inputs().role]) == 4


def test_a_null_input_is_written_as_null():
    _, tfvars = documents(cluster_inputs())
    assert tfvars["cluster_network"] is None
    assert tfvars["control_plane_endpoint"] is None


@pytest.mark.parametrize("inputs", ALL)
def test_variables_arguments_and_values_are_the_rows_of_the_table(inputs):
    main, tfvars = documents(inputs)
    rows = {row.name: row for row in INPUTS if inputs.role in row.roles}
    assert set(tfvars) == set(main["variable"]) == set(rows)
    for name, row in rows.items():
        declared = {"type": row.type}
        if row.nullable:
            declared["default"] = None
        if row.sensitive:
            declared["sensitive"] = True
        assert main["variable"][name] == declared
    assert main["module"] == {
        "role": {"source": "../../module"} | {name: f"${{var.{name}}}" for name in rows}
    }
    assert main["terraform"] == {"backend": {"kubernetes": {}}}
    assert set(main) == {"terraform", "variable", "module", "output"}


def test_only_bootstrap_data_is_sensitive_and_only_nullable_inputs_have_a_default():
    main, _ = documents(machine_inputs())
    sensitive = {name for name, v in main["variable"].items() if v.get("sensitive")}
    defaulted = {name for name, v in main["variable"].items() if "default" in v}
    assert sensitive == {"bootstrap_data"}
    assert defaulted == {"failure_domain", "kubernetes_version"}


def test_user_variables_are_declared_without_a_type_and_handed_on():
    main, tfvars = documents(
        cluster_inputs(),
        {
            "size": UserVariable(value=parse("40")),
            "pw": UserVariable(value="x", sensitive=True),
        },
    )
    assert main["variable"]["size"] == {}
    assert main["variable"]["pw"] == {"sensitive": True}
    assert main["module"]["role"]["size"] == "${var.size}"
    assert main["module"]["role"]["pw"] == "${var.pw}"
    assert (tfvars["size"], tfvars["pw"]) == (40, "x")


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(max_size=5)), st.text(max_size=5))
def test_equal_inputs_give_equal_bytes_and_a_value_leaves_main_as_it_is(values, other):
    variables = {name: UserVariable(value=value) for name, value in values.items()}
    backwards = dict(reversed(variables.items()))
    one, two = render(cluster_inputs(), variables), render(cluster_inputs(), backwards)
    assert one == two
    changed = {name: UserVariable(value=other) for name in variables}
    assert render(cluster_inputs(), changed).main_tf_json == one.main_tf_json


def test_what_a_module_wrote_keeps_its_text():
    exports = parse('{"text": "a<b>&", "id": 12345678901234567890}')
    files = render(machine_inputs(cluster_outputs=exports), {})
    assert b'"a<b>&"' in files.tfvars_json
    assert b'"id": 12345678901234567890,' in files.tfvars_json


@pytest.mark.parametrize("data", ["aGVsbG8", "aGVsbG8=\n", "aGVs bG8=", "aGVsbG9=", "_-8="])
def test_bootstrap_data_must_be_strict_base64_and_is_never_shown(data):
    for inputs in (machine_inputs(bootstrap_data=data), pool_inputs(bootstrap_data=data)):
        with pytest.raises(ContractError, match="bootstrap_data") as caught:
            render(inputs, {})
        assert data.strip() not in str(caught.value)


def test_a_reserved_variable_name_is_not_rendered():
    with pytest.raises(VariablesError, match="captf_x"):
        render(cluster_inputs(), {"captf_x": UserVariable(value="1")})


def test_a_million_bytes_fit_and_one_more_does_not():
    def rendered(length):
        return render(cluster_inputs(), {"padding": UserVariable(value="x" * length)})

    room = SIZE_LIMIT - rendered(0).size
    assert rendered(room).size == SIZE_LIMIT
    with pytest.raises(InputsTooLarge) as caught:
        rendered(room + 1)
    assert (caught.value.size, caught.value.limit) == (SIZE_LIMIT + 1, SIZE_LIMIT)
    assert "1000001" in str(caught.value)


def test_a_restore_needs_a_backend_only():
    files = render_restore()
    assert json.loads(files.main_tf_json) == {"terraform": {"backend": {"kubernetes": {}}}}
    assert json.loads(files.tfvars_json) == {}


def test_secret_values_are_not_in_the_representation():
    files = render(machine_inputs(), {"pw": UserVariable(value="hunter2", sensitive=True)})
    assert "hunter2" not in repr(files)
    assert "hunter2" not in repr(UserVariable(value="hunter2"))
    assert "I2Nsb3Vk" not in repr(machine_inputs())


def test_the_files_end_in_a_newline_and_are_indented():
    files = render(cluster_inputs(), {})
    for body in files.data().values():
        assert body.startswith(b'{\n  "')
        assert body.endswith(b"}\n")
