"""The CEL library, without what else its package brings along."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any


@cache
def cel() -> Any:
    """The compiled part of package `cel`, loaded when the first rule is compiled.

    Importing the package itself also imports its command line, which takes over a second.
    """
    spec = importlib.util.find_spec("cel")
    assert spec is not None, "the package common-expression-language is a dependency"
    assert spec.submodule_search_locations is not None
    for folder in spec.submodule_search_locations:
        for library in sorted(Path(folder).glob("cel.*")):
            inner = importlib.util.spec_from_file_location("cel.cel", library)
            if library.suffix in (".so", ".pyd", ".dylib") and inner and inner.loader:
                module = importlib.util.module_from_spec(inner)
                sys.modules["cel.cel"] = module
                inner.loader.exec_module(module)
                return module
    return importlib.import_module("cel")
