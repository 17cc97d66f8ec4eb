"""Libraries of simulated aclnn kernels, in the layout of an installed opp package."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from .cache import replacing
from .compiler import Library, build
from .errors import BuildError
from .installed import acl_includes, simulator_folder, torch_includes, version
from .libraries import build_libraries, torch_libraries

SONAME = "libcust_opapi.so"


def build_kernels(
    sources: Iterable[str | Path],
    folder: str | Path,
    vendor: str = "simulated",
    include_dirs: Iterable[str | Path] = (),
) -> Path:
    """Builds kernels written with ``<custom_pypto_simulator/aclnn.h>`` into an opp tree.

    The library becomes ``<folder>/vendors/<vendor>/op_api/lib/libcust_opapi.so``, and
    ``<folder>/vendors/config.ini`` gives ``vendor`` the highest priority. So ``folder`` can be
    ASCEND_OPP_PATH, and the path returned, ``<folder>/vendors/<vendor>``, an entry of
    ASCEND_CUSTOM_OPP_PATH. What was built before is taken from the cache. Raises BuildError.
    """
    paths = tuple(Path(source).resolve() for source in sources)
    if not paths:
        raise BuildError("build_kernels: needs at least one source file")
    simulator = simulator_folder()
    includes = (simulator / "include", *(Path(each).resolve() for each in include_dirs))
    (library,) = build(
        [
            Library(
                SONAME,
                sources=paths,
                includes=includes,
                system_includes=(*torch_includes(), *acl_includes()),
                versions=(version("torch"), version("torch_npu")),
                needed=(*build_libraries().runtime[:2], *torch_libraries()),
            )
        ]
    )
    vendors = Path(folder).resolve() / "vendors"
    with replacing(vendors / vendor / "op_api" / "lib" / SONAME) as target:
        shutil.copyfile(library, target)
        target.chmod(0o755)
    _put_first(vendors / "config.ini", vendor)
    return vendors / vendor


def _put_first(config: Path, vendor: str) -> None:
    key = "load_priority="
    text = config.read_text(encoding="utf-8").strip() if config.exists() else key
    if not text.startswith(key):
        raise BuildError(f"{config} must start with '{key}', got '{text}'")
    others = [each for each in text[len(key) :].split(",") if each and each != vendor]
    with replacing(config) as target:
        target.write_text(key + ",".join([vendor, *others]) + "\n", encoding="utf-8")
