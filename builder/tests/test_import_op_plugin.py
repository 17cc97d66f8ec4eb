"""custom-pypto import --op-plugin: entries of op_plugin_functions.yaml as ops of ops.toml."""

from __future__ import annotations

import sys
from textwrap import dedent, indent

import pytest
from custom_pypto_build.importing import op_plugin, ops_toml
from custom_pypto_build.importing.model import ImportedOp, ImportingError, Subject


def read(entries: str, section: str = "custom") -> list[ImportedOp]:
    text = f"{section}:\n{indent(dedent(entries), '  ')}"
    return [ops_toml.check(op) for op in op_plugin.read(text, "functions.yaml")]


def entry(func: str, generated: str, keys: str = "op_api: all_version") -> ImportedOp:
    """Return the op of one entry, whose gen_opapi is `generated`."""
    body = indent(dedent(generated), "    ")
    [op] = read(f"- func: {func}\n  {keys}\n  gen_opapi:\n{body}")
    return op


def open_questions(op: ImportedOp) -> list[tuple[int, Subject]]:
    return [(each.place.line, each.subject) for each in op.decisions]


PARAMS = (
    "{flag: 'true', dim: '(int64_t)-1', layout: '\"TND\"', text: 'const_cast<char *>(mode.data())'}"
)


def test_an_output_with_size_and_dtype_of_an_argument_is_contiguous_and_so_described() -> None:
    op = entry(
        "blend(Tensor self, Tensor? mask=None, *, float ratio=1, str mode='x') -> Tensor",
        "out:\n  size: self\n  dtype: at::kFloat\nexec: aclnnBlend, self, mask, mode, ratio, out",
    )
    assert op.decisions == []
    assert op.tensors == {"self": {"shape": "*self_shape"}, "mask": {}}
    assert op.outputs == {"out": {"shape": "*self_shape", "dtype": "float32"}}
    assert op.launch == "aclnnBlend(self, mask, mode, ratio, out)"


def test_a_list_of_sizes_is_a_shape_and_needs_the_dims_that_it_reads() -> None:
    op = entry(
        "pick(Tensor x, SymInt k) -> (Tensor, Tensor)",
        "a:\n  size: '{x.size(0), k, 8L, x.size(-1)}'\n  dtype: x\n"
        "b:\n  size: 'c10::SmallVector<int64_t, op_infer::SIZE>{}'\n  dtype: at::kLong\n"
        "exec: aclnnPick",
    )
    assert op.decisions == []
    assert [each["shape"] for each in op.outputs.values()] == ["x.shape[0] k 8 x.shape[-1]", ""]
    assert {rule["check"] for rule in op.rules} == {"x.ndim >= 1"}


def test_in_place_and_out_inherit_the_call_of_the_function_with_an_output() -> None:
    ops = {
        op.name: op
        for op in read(
            """\
            - func: twist(Tensor self, int k) -> Tensor
              op_api: all_version
              gen_opapi:
                structured_inherit: twist.out
            - func: twist.out(Tensor self, int k, *, Tensor(a!) out) -> Tensor(a!)
              op_api: all_version
              gen_opapi:
                out:
                  size: self
                  dtype: self
                  name: self
                exec: aclnnTwist, k, self, out
            - func: twist_(Tensor(a!) self, int k) -> Tensor(a!)
              op_api: all_version
              gen_opapi:
                structured_inherit: twist.out
            """
        )
    }
    assert [op.decisions for op in ops.values()] == [[], [], []]
    assert {name: op.launch for name, op in ops.items()} == {
        "twist": "aclnnTwist(k, self, out)",
        "twist.out": "aclnnTwist(k, self, out)",
        "twist_": "aclnnTwist(k, self, self)",
    }
    # A caller has what the op writes, so it is not returned.
    assert ops["twist_"].schema == "twist_(Tensor(a!) self, int k) -> ()"
    assert ops["twist.out"].tensors["out"] == {"shape": "*self_shape", "dtype": "=self"}


@pytest.mark.parametrize(
    ("func", "generated", "launch"),
    [
        (
            "two(Tensor x, int k, *, bool flag) -> (Tensor, Tensor)",
            "a: {size: x.sizes(), dtype: x.scalar_type()}\nb: {size: x, dtype: x}\nexec: aclnnTwo",
            "aclnnTwo(x, k, flag, a, b)",
        ),
        (
            "fixed_(Tensor(a!) self, str mode) -> Tensor(a!)",
            f"new_params: {PARAMS}\nexec: aclnnFixed, self, flag, dim, layout, text",
            "aclnnFixed(self, True, -1, 'TND', mode)",
        ),
    ],
)
def test_exec_passes_what_it_names_constants_and_strings_or_all_and_the_outputs(
    func: str, generated: str, launch: str
) -> None:
    op = entry(func, generated)
    assert (op.decisions, op.launch) == ([], launch)


@pytest.mark.parametrize(
    ("func", "generated", "line", "subject"),
    [
        ("a(Tensor x, Scalar k) -> Tensor", "o:\n  size: x\n  dtype: x\nexec: aclnnA", 2, "SCHEMA"),
        ("a(Tensor x) -> Tensor", "o:\n  size: f(x)\n  dtype: x\nexec: aclnnA", 6, "SHAPE"),
        ("a(Tensor x) -> Tensor", "o:\n  dtype: x\nexec: aclnnA", 6, "SHAPE"),
        ("a(Tensor x) -> (Tensor, Tensor)", "o:\n  size: x\n  dtype: x\nexec: aclnnA", 2, "SHAPE"),
        ("a(Tensor? x) -> Tensor", "o:\n  size: '{1}'\n  dtype: x\nexec: aclnnA", 7, "DTYPE"),
        ("a_(Tensor(a!) x) -> Tensor(a!)", "exec: aclnnA, x, y", 5, "KERNEL"),
        ("a_(Tensor(a!) x) -> Tensor(a!)", "exec: somethingElse, x", 5, "KERNEL"),
        ("a_(Tensor(a!) x) -> Tensor(a!)", "exec: aclnnA\nelse: 1", 6, "KEY"),
        ("a_(Tensor(a!) x) -> Tensor(a!)", "structured_inherit: b", 5, "KERNEL"),
        ("a(*, Tensor(a!)[] o) -> Tensor(a!)", "o:\n  size: x\nexec: aclnnA", 6, "KEY"),
        ("a(Tensor x) -> (, Tensor)", "exec: aclnnA", 2, "SHAPE"),
        ("a_(Tensor(a!) x) -> Tensor(a!)", "new_params: {n: f(x)}\nexec: aclnnA, n", 5, "KERNEL"),
    ],
)
def test_what_is_not_understood_is_a_decision_with_its_line(
    func: str, generated: str, line: int, subject: str
) -> None:
    op = entry(func, generated)
    assert (line, Subject[subject]) in open_questions(op)
    assert not op.is_complete


@pytest.mark.parametrize(
    ("keys", "subjects"),
    [
        ("op_api: v2.1", [Subject.KEY]),
        ("op_api: [v2.1, v2.9]", [Subject.KEY]),
        ("op_api: [v2.14, newest]", [Subject.KEY]),
        ("op_api: all_version\n  dispatch: {CPU: a}", [Subject.KEY]),
        ("op_api: all_version\n  tags: nondeterministic_seeded", [Subject.KEY]),
        # Keys of torch_npu's own dispatch.
        ("op_api: [v2.6, newest]\n  acl_op: v2.1\n  exposed: all_version", []),
    ],
)
def test_a_key_that_may_change_what_the_op_does_is_a_decision(
    keys: str, subjects: list[Subject]
) -> None:
    op = entry("a_(Tensor(a!) x) -> Tensor(a!)", "exec: aclnnA", keys)
    assert [subject for _, subject in open_questions(op)] == subjects


def test_calls_that_only_torch_npu_takes_are_refused_and_listed() -> None:
    op = entry(
        "ceil_(Tensor(a!) self) -> Tensor(a!)",
        "exec: aclnnInplaceCeil\nintegral_identity_tensor: self\ncpu_scalar_h2d: [self]",
    )
    assert [each for _, each in open_questions(op)] == [Subject.NARROWER, Subject.NARROWER]
    assert op.is_complete
    [rule] = op.rules
    assert "int64" in rule["check"]


def test_a_function_without_gen_opapi_is_a_decision_about_its_kernel() -> None:
    hand_written, by_ge = read(
        """\
        - func: a(Tensor x) -> Tensor
          op_api: all_version
        - func: b(Tensor x) -> Tensor
          acl_op: all_version
        """
    )
    assert "somebody wrote its C++" in hand_written.decisions[0].text
    assert "acl_op alone" in by_ge.decisions[0].text


def test_func_chooses_all_overloads_or_one() -> None:
    text = "official:\n- func: f.a(Tensor x) -> Tensor\n- func: f.b(Tensor x) -> Tensor\n"
    names = [op.name for op in op_plugin.read(text, "functions.yaml", "f")]
    assert names == ["f.a", "f.b"]
    assert [op.name for op in op_plugin.read(text, "functions.yaml", "f.b")] == ["f.b"]
    with pytest.raises(ImportingError, match=r"has no function 'f.c'; did you mean"):
        list(op_plugin.read(text, "functions.yaml", "f.c"))


@pytest.mark.parametrize("item", ["- 1", "- [a]", "- {func: [x]}", "- func: no schema", "- {}"])
def test_an_entry_that_is_no_function_is_a_decision(item: str) -> None:
    [op] = read(item)
    assert open_questions(op) == [(2, Subject.KEY)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has none of the lists official, custom"),
        ("- 1", "has none of the lists"),
        ("custom: [", "is not YAML"),
        ("custom: \x07", "is not YAML"),
        ("custom: " + "[" * 100, "nested too deeply"),
        # Some versions of libyaml refuse this themselves.
        ("custom: " + "[" * 100_000, "nest"),
    ],
)
def test_another_file_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ImportingError, match=message):
        list(op_plugin.read(text, "functions.yaml"))


def test_anchors_that_make_a_small_file_huge_are_cut() -> None:
    levels = "\n".join(
        f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" if i else "l0: &l0 [x, x]"
        for i in range(30)
    )
    ops = list(op_plugin.read(f"{levels}\ncustom:\n- *l29\n", "functions.yaml"))
    assert max(len(each.text) for op in ops for each in op.decisions) < 300


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportingError, match="pip install pyyaml"):
        list(op_plugin.read("custom: []", "functions.yaml"))
