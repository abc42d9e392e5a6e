"""What admission refuses beyond the kinds' schemas: one table, as ValidatingAdmissionPolicies.

A real API server evaluates these expressions without a webhook server of ours, the embedded one
evaluates the same text, and so do the commands that read objects from files.

A server tells only the first validation that fails. So that a person learns everything at once,
each rule is a variable that lists what breaks it, `variables.problems` holds all lists, and one
validation says that it is empty. A rule about who asks is a validation of its own, because a
message expression cannot use a variable that asks the authorizer. A further kind is a further row
of `POLICIES`; that of plans depends on who the manager is.
"""

from typing import Any

from captfctl.install import deletion_protection
from captfctl.install.job_rules import job_policies, job_policy_rules
from captfctl.install.metadata_rules import template_metadata_rules
from captfctl.install.plan_rules import plan_policy
from captfctl.install.policy_parts import (
    Policy,
    Rule,
    Validation,
    changed,
    has,
    text,
    texts,
)
from captfctl.model.interface import input_names
from captfctl.model.kinds import Role
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOL_TEMPLATES,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
)
from captfctl.model.variable_names import (
    IDENTIFIER,
    META_ARGUMENTS,
    NO_IDENTIFIER,
    RESERVED_BY_MODULE_BLOCK,
    RESERVED_BY_PREFIX,
    RESERVED_PREFIX,
    reserved_by_contract,
)

# The grammar of image references that container runtimes share. A short name is Docker Hub's.
_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_PART}(?:\.{_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = f"(?:{_HOST}/)?{_WORD}(?:/{_WORD})*"
_TAG = "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST = "(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"
_REFERENCE = f"^{_NAME}(?::{_TAG})?(?:@{_DIGEST})?$"
_HAS_HOST = "^(?:[^/]*[.:A-Z][^/]*|localhost)/"
_LONGEST_NAME = 255
_DOCKER_HUB = "docker.io/"


def _image(path: str) -> Rule:
    named = f"item.find({text('^' + _NAME)})"
    whole = f"(item.matches({text(_HAS_HOST)}) ? {named} : {text(_DOCKER_HUB)} + {named})"
    sound = (
        f"item.matches({text(_REFERENCE)}) && !item.matches('^[a-f0-9]{{64}}$') && "
        f"{whole}.size() <= {_LONGEST_NAME}"
    )
    return Rule(
        name="image",
        items=f"{changed(path)} ? [object.{path}].filter(item, !({sound})) : []",
        field=text(path),
        message=(
            "'\"' + item.replace('\\n', ' ') + '\" is not a valid image reference: write "
            f"[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST], NAME in lower case and of at most "
            f"{_LONGEST_NAME} characters'"
        ),
    )


def _variables(path: str, role: Role) -> Rule:
    problems = {
        f"!item.matches({text(f'^{IDENTIFIER}$')})": NO_IDENTIFIER,
        f"item.startsWith({text(RESERVED_PREFIX)})": RESERVED_BY_PREFIX,
        f"item in {texts(sorted(META_ARGUMENTS))}": RESERVED_BY_MODULE_BLOCK,
        f"item in {texts(sorted(input_names(role)))}": reserved_by_contract(role),
    }
    *first, (_, last) = problems.items()
    choice = " : ".join(f"{broken} ? {text(problem)}" for broken, problem in first)
    return Rule(
        name="userVariables",
        items=f"{changed(path)} ? object.{path}.filter(item, {' || '.join(problems)}) : []",
        field=f"{text(path + '[')} + item.replace('\\n', '\\\\n') + ']'",
        message=f"'the name ' + ({choice} : {text(last)})",
    )


def _may_read_the_secret() -> Validation:
    """Nobody hands out credentials that they cannot read themselves."""
    ref = "object.spec.secretRef"
    unchanged = " && ".join(f"!({changed(path)})" for path in ("spec.secretRef", _ALLOWED))
    asked = (
        f"authorizer.group('').resource('secrets').namespace({ref}.namespace).name({ref}.name)"
        ".check('get').allowed()"
    )
    return Validation(
        expression=f"!({has('object', 'spec.secretRef')}) || ({unchanged}) || {asked}",
        message=(
            "'spec.secretRef: user \"' + request.userInfo.username + '\" may not get Secret ' + "
            f"{ref}.namespace + '/' + {ref}.name + ', so cannot let others use it'"
        ),
        otherwise="spec.secretRef: the user may not get this Secret, so cannot let others use it",
    )


_ALLOWED = "spec.allowedNamespaces"


def _fixed(path: str, message: str, *, unless: str = "false") -> Rule:
    """What is at `path` never changes, as a JSON value: the order of keys is none of it."""
    new, old = has("object", path), has("oldObject", path)
    same = f"({new}) == ({old}) && (!({new}) || object.{path} == oldObject.{path})"
    return Rule(
        name="fixed",
        items=f"oldObject == null || ({same}) || {unless} ? [] : [{text(path)}]",
        field="item",
        message=text(message),
    )


def _set_by_the_manager() -> Validation:
    """An object that is created with a provider ID is restored or moved. On one that exists only
    the manager sets it, who is known by what nobody else may do."""
    path = "spec.providerID"
    unchanged = (
        f"oldObject == null || !({has('object', path)}) || ({has('oldObject', path)} && "
        f"object.{path} == oldObject.{path})"
    )
    asked = (
        f"authorizer.group({text(TERRAFORM_MACHINES.group)})"
        f".resource({text(TERRAFORM_MACHINES.plural)}).subresource('status')"
        ".namespace(object.metadata.namespace).check('patch').allowed()"
    )
    return Validation(
        expression=f"{unchanged} || {asked}",
        message=(
            f"'{path}: is set by the manager, from the output of the module, not by user \"' + "
            "request.userInfo.username + '\"'"
        ),
        otherwise=f"{path}: is set by the manager, from the output of the module",
    )


def _made_by_the_module(path: str) -> Rule:
    return Rule(
        name="providerID",
        items=f"{changed(path)} ? [{text(path)}] : []",
        field="item",
        message=text("must not be set: each machine gets one of its own"),
    )


def _of(
    resource: Resource[Any],
    role: Role,
    *further: Rule,
    spec: str = "spec",
    validations: tuple[Validation, ...] = (),
) -> Policy:
    """The policy of a kind that holds, at `spec`, what a module of `role` is run with."""
    jobs = [f"{spec}.jobs"]
    if role is Role.CLUSTER:
        jobs.append(f"{spec}.defaults.jobs")
    return Policy(
        resource=resource.untyped(),
        helpers=job_policies(*jobs),
        rules=(
            _image(f"{spec}.source.image"),
            _variables(f"{spec}.variables", role),
            *job_policy_rules(),
            *further,
        ),
        validations=validations,
    )


_TEMPLATE = "spec.template.spec"
_TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
# A ClusterClass asks in this way what would become of a template that it changes.
_ONLY_ASKED = (
    f"(request.dryRun && has(object.metadata.annotations) && "
    f"{text(_TOPOLOGY_DRY_RUN)} in object.metadata.annotations)"
)


def _template(resource: Resource[Any], role: Role, *further: Rule) -> Policy:
    fixed = _fixed(
        _TEMPLATE,
        f"is immutable: create another {resource.kind} with the changed spec",
        unless=_ONLY_ASKED,
    )
    rules = (fixed, *template_metadata_rules("spec.template.metadata"), *further)
    return _of(resource, role, *rules, spec=_TEMPLATE)


def _without_identity() -> Policy:
    """Clusters made from such a template are refused; a patch of the ClusterClass may set it."""
    path = f"{_TEMPLATE}.identityRef"
    unset = Rule(
        name="identity",
        items=f"{has('object', path)} ? [] : [{text(path)}]",
        field="item",
        message=text(
            "is not set: clusters made from this template are refused, unless a patch of the "
            "ClusterClass sets it"
        ),
    )
    return Policy(resource=TERRAFORM_CLUSTER_TEMPLATES.untyped(), action="Warn", rules=(unset,))


POLICIES: tuple[Policy, ...] = (
    _of(TERRAFORM_CLUSTERS, Role.CLUSTER),
    _of(
        TERRAFORM_MACHINES,
        Role.MACHINE,
        _fixed(
            "spec.variables",
            "is immutable: create another machine with the changed variables",
        ),
        validations=(_set_by_the_manager(),),
    ),
    _of(TERRAFORM_MACHINE_POOLS, Role.MACHINE_POOL),
    _template(TERRAFORM_CLUSTER_TEMPLATES, Role.CLUSTER),
    _without_identity(),
    _template(
        TERRAFORM_MACHINE_TEMPLATES, Role.MACHINE, _made_by_the_module(f"{_TEMPLATE}.providerID")
    ),
    _template(TERRAFORM_MACHINE_POOL_TEMPLATES, Role.MACHINE_POOL),
    Policy(
        resource=TERRAFORM_CLUSTER_IDENTITIES.untyped(),
        validations=(_may_read_the_secret(),),
    ),
)


def policies(manager: str = "") -> list[Document]:
    """Every policy, each followed by its binding. `manager` is the user name of the manager; empty:
    it is not known, and nobody may do what only the manager may."""
    every = (*POLICIES, plan_policy(manager))
    rules = [document for policy in every for document in policy.documents()]
    return [*rules, *deletion_protection.documents()]


def policies_for_files() -> list[Document]:
    """Those for objects that are read from files: nobody makes a request there."""
    some = (policy.where_nobody_asks for policy in POLICIES)
    return [document for policy in some if policy for document in policy.documents()]
