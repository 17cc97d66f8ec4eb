"""The tools of the repository: versions, environments of tox."""

import re
from configparser import RawConfigParser
from itertools import product

from repository import ROOT

TOX = RawConfigParser()
TOX.read(ROOT / "tox.ini")
# Benchmarks and examples, whose results are for people; other releases of torch and the newest.
NOT_IN_ALL = re.compile(r".*bench|demo|transformers(-train)?|torches-.*|newest(-.*)?|all")


def environments() -> set[str]:
    """The environments that the sections of tox.ini name, without braces."""
    names: set[str] = set()
    for section in TOX.sections():
        if section.startswith("testenv:"):
            parts = [each.split(",") for each in re.split("[{}]", section.partition(":")[2])]
            names |= {"".join(chosen) for chosen in product(*parts)}
    return names


def test_labels_of_tox_name_every_environment_whose_result_is_a_check() -> None:
    checks = {name for name in environments() if not NOT_IN_ALL.fullmatch(name)}
    newest = {name for name in environments() if name.startswith("newest-")}
    lines = TOX["tox"]["labels"].replace("\\\n", "").strip().splitlines()
    named = [line.split(" = ") for line in lines]
    labels = {label: set(re.split(r",\s*", names)) for label, names in named}
    assert labels == {"all": checks, "newest": {"wheels", *newest}}
