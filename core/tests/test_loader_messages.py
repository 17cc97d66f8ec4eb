"""The warnings, errors and log of loading."""

import json

import pytest
from custom_pypto_contract import ops_file
from custom_pypto_discovery.printable import LONGEST
from loading import CHILDREN_HERE, HOOKS, REPORT, failure_of
from plugin_factory import Site, link


def test_warning_points_to_the_line_that_imports_core(site: Site) -> None:
    site.install("broken", "raise ValueError")
    (site.folder / "program.py").write_text("import custom_pypto.core", encoding="utf-8")
    done = site.start(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import program
        assert [[w.filename, w.lineno] for w in caught] == [[program.__file__, 1]]
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_of_a_plugin_that_fails_acts_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m\\r')", version="0.1.0\x1b[2K\u202e")
    report = site.run(REPORT)
    ((_, warning, _),) = report["warnings"]
    error = site.load("refusal(getattr, ops, 'broken', error=AttributeError)", quiet=True)
    strict = site.start("import custom_pypto.core", CUSTOM_PYPTO_STRICT="1").stderr
    for text in (warning, error, strict.splitlines()[-1]):
        assert text.isprintable()
        assert r"0.1.0\x1b[2K\u202e" in text
        assert r"RuntimeError: \x1b[31m\r" in text
    assert "\x1b" not in strict
    assert report["reasons"]["broken"].isprintable()


LONG = {
    "exception": ("raise RuntimeError('x' * 10_000_000 + 'the end')", "RuntimeError: xxx", "1)"),
    "name of an op": (
        f"{HOOKS}@hookimpl\ndef custom_pypto_fakes(): return {{'x' * 35_000: fake}}",
        "custom_pypto_fakes: 'xxx",
        "its ops are 'broken'",
    ),
}


@pytest.mark.parametrize(("code", "begin", "end"), LONG.values(), ids=LONG)
def test_long_text_of_a_plugin_is_cut_once(site: Site, code: str, begin: str, end: str) -> None:
    site.install("broken", code)
    reason = failure_of(site)
    assert begin in reason
    assert reason.endswith(end)
    assert reason.count(" characters left out] ") == 1
    assert len(reason) < LONGEST + 100
    link(site.folder, "custom_pypto_cli", "custom_pypto_build")
    listed = site.start(CHILDREN_HERE, "from custom_pypto_cli import main; main(['list'])").stdout
    assert f"\n  {reason}\n" in listed
    assert len(listed) < LONGEST + 1000


def test_help_and_errors_of_an_op_cannot_act_on_the_terminal(site: Site) -> None:
    contract = {
        "schema": "first(Tensor x) -> Tensor",
        "summary": "it CODE[2J clears",
        "tensors": {"x": {}},
        "rules": [
            {"argument": "x", "check": "x.ndim == 1", "message": "must be CODE[31m\n1-D\u202e"}
        ],
        "outputs": {"y": {"like": "x"}},
    }
    (op,) = ops_file.read_document({"first": contract}).ops
    # No build writes such a text.
    data = json.loads(json.dumps(op.data).replace("CODE", r"\u001b"))
    site.install("first").forge(ops=[{"name": "first", **data}])
    shown, error = site.load(
        """
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            try: ops.first(torch.ones(2, 2))
            except RuntimeError as raised: error = str(raised)
        (ops.first.__doc__, error)
        """
    )
    assert r"it \x1b[2J clears" in shown
    assert shown.replace("\n", "").isprintable()
    assert error == r"first: argument 'x' must be \x1b[31m\n1-D\u202e"


def test_a_long_name_of_a_user_s_is_cut(site: Site) -> None:
    ((_, message, _),) = site.run(REPORT, CUSTOM_PYPTO_DISABLE="x" * 100_000)["warnings"]
    assert message.startswith("CUSTOM_PYPTO_DISABLE names no installed plugin: 'xxx")
    error = site.load("refusal(getattr, ops, 'x' * 1_000_000, error=AttributeError)")
    for text in (message, error):
        assert "characters left out" in text
        assert len(text) < LONGEST + 1000


def test_steps_are_logged(site: Site) -> None:
    site.install("first")
    given = site.run(
        """
        import logging
        class Keep(logging.Handler):
            def emit(self, record): messages.append(record.getMessage())
        messages = []
        logging.getLogger("custom_pypto").addHandler(Keep())
        logging.getLogger("custom_pypto").setLevel(logging.DEBUG)
        import custom_pypto.core
        give([message.split(" ")[:2] for message in messages])
        """
    )
    assert given == [["first:", each] for each in ("loading", "opening", "importing", "loaded")]
