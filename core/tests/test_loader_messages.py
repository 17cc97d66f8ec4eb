"""The warnings, errors and log of loading."""

from __future__ import annotations

from loading import REPORT, failure_of
from plugin_factory import Site


def test_warning_points_to_the_line_that_imports_core(site: Site) -> None:
    site.install("broken", "raise ValueError")
    (site.folder / "program.py").write_text("import custom_pypto.core", encoding="utf-8")
    given = site.run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import program
        give([[w.filename, w.lineno] for w in caught])
        """
    )
    assert given == [[str(site.folder / "program.py"), 1]]


HOSTILE_VERSION = "0.1.0\x1b[2K\u202e"


def test_warning_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m\\r')", version=HOSTILE_VERSION)
    ((_, message, _),) = site.run(REPORT)["warnings"]
    assert message.isprintable()
    assert r"0.1.0\x1b[2K\u202e" in message
    assert r"RuntimeError: \x1b[31m\r" in message


def test_error_of_strict_mode_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m')", version=HOSTILE_VERSION)
    done = site.start("import custom_pypto.core", CUSTOM_PYPTO_STRICT="1")
    assert r"0.1.0\x1b[2K\u202e" in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.stderr


def test_error_about_an_op_cannot_act_on_the_terminal(site: Site) -> None:
    site.install("broken", "raise RuntimeError('\\x1b[31m')", version=HOSTILE_VERSION)
    reported = site.load(
        """
        try: ops.broken
        except AttributeError as error: text = str(error)
        text
        """,
        quiet=True,
    )
    assert reported.isprintable()
    assert r"RuntimeError: \x1b[31m" in reported


def test_long_text_of_an_exception_is_shortened(site: Site) -> None:
    site.install("broken", "raise RuntimeError('x' * 1_000_000 + 'the end')")
    reason = failure_of(site)
    assert "RuntimeError: xxx" in reason
    assert "the end (" in reason
    assert len(reason) < 5000


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


def test_nothing_is_printed(site: Site) -> None:
    site.install("first")
    site.install("broken", "raise ValueError")
    done = site.start("import warnings; warnings.simplefilter('ignore'); import custom_pypto.core")
    assert (done.stdout, done.stderr) == ("", "")
