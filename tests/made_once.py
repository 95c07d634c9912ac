"""Trained runs, exports and models that tests share are made once and kept between test runs.

Each is a folder in build/test-cache, by a digest of what makes it: the sources of the layer and
the training, of the exports if it has any, of the function that makes it with the helpers that its
file imports, and the environment. An edit of any of these makes it anew.
"""

import ast
import hashlib
import importlib.metadata
import inspect
import json
import platform
import shutil
import sys
from functools import cache
from pathlib import Path

import grimp
from filelock import FileLock, Timeout

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / "build" / "test-cache"
ALWAYS = ("keras_gru", "training/gru_training")
EXPORTING = ("gru_serving.commands.export", "gru_serving.export.run")
KEPT = 2
"""How many digests of an artefact, and of environments, are kept: the last ones used."""
MAX_XLA_BYTES = 1_000_000_000

_used = []


def made_once(name, make):
    """A folder that `make(folder)` has filled, in this test run or in an earlier one.

    A process that needs it while another one makes it waits. Tests leave the folder as it is;
    `changed` names those that something has been written to.

    Args:
        name: Name of the artefact, unique among all tests.
        make: Function of a file that can be read, by which the folder is filled.
    """
    cache = environment_cache()
    digest = _digest(*_sources(Path(inspect.getsourcefile(make))))
    folder = cache / f"{name}-{digest}"
    done = _record(folder)
    with FileLock(cache / f"{folder.name}.lock"):
        if not done.exists() or _listed(folder) != json.loads(done.read_text()):
            done.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.write_text(json.dumps(_listed(folder)))
            _remove_old(done.parent.glob(f"{name}-{'?' * len(digest)}.json"))
        done.touch()
    _used.append(folder)
    return folder


def changed():
    """Artefacts of this process that no longer have the files that they were made with."""
    return [
        folder.name
        for folder in _used
        if _record(folder).exists() and _listed(folder) != json.loads(_record(folder).read_text())
    ]


@cache
def environment_cache():
    """Folder of what is made with these versions of Python and of all packages, on this processor.

    Runs repeat to the last bit, and compiled programs run, only where both are the same.
    """
    packages = sorted(
        f"{found.name} {found.version}" for found in importlib.metadata.distributions()
    )
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    features = sorted({line for line in lines if line.startswith(("flags", "model name"))})
    said = "\n".join([sys.version, platform.platform(), *features, *packages])
    folder = CACHE / hashlib.sha256(said.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "used").touch()
    return folder


def compiled_programs():
    """Folder in which XLA keeps what it compiles, for all processes and test runs."""
    folder = environment_cache() / "xla"
    folder.mkdir(exist_ok=True)
    return folder


def tidy():
    """Remove environments but the last ones used, and the oldest compiled programs of this one."""
    _remove_old([found / "used" for found in CACHE.iterdir()], whole=True)
    programs = sorted(compiled_programs().iterdir(), key=lambda path: path.stat().st_mtime)
    size = sum(path.stat().st_size for path in programs)
    for path in programs:
        if size <= MAX_XLA_BYTES:
            break
        size -= path.stat().st_size
        path.unlink()


def _record(folder):
    """The list of an artefact's files, written once it is complete."""
    return folder.with_name(f"{folder.name}.json")


def _listed(folder):
    return {
        str(path.relative_to(folder)): [path.stat().st_size, path.stat().st_mtime_ns]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _remove_old(records, whole=False):
    """Remove all but the last ones used; with `whole` each record's folder, else its artefact."""
    by_use = sorted(
        (record for record in records if record.exists()), key=lambda path: path.stat().st_mtime
    )
    for record in by_use[:-KEPT]:
        if whole:
            shutil.rmtree(record.parent, ignore_errors=True)
            continue
        lock = record.with_suffix(".lock")
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(record.with_suffix(""), ignore_errors=True)
                record.unlink()
        except Timeout:
            continue
        lock.unlink(missing_ok=True)


def _digest(*paths):
    found = hashlib.sha256()
    for path in paths:
        found.update(f"{path.relative_to(REPOSITORY)} {_content(path)}\n".encode())
    return found.hexdigest()[:12]


@cache
def _content(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _sources(file):
    """The layer, the training, a test file, and what of `tests` and `gru_serving` it imports."""
    tests, served, left = set(), set(), [file]
    while left:
        if (path := left.pop()) in tests:
            continue
        tests.add(path)
        names = _imported(path)
        served |= {name for name in names if name.startswith("gru_serving.")}
        found = [_source(REPOSITORY, name) for name in names if name.startswith("tests.")]
        left += [source for source in found if source is not None]
    return tuple(sorted({*tests, *_product(), *(_serving(frozenset(served)) if served else ())}))


def _imported(path):
    """Names of modules that a file imports, at its top and in functions, and of what is in them."""
    here = path.parent.relative_to(REPOSITORY).parts
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) + 1 - node.level] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return found


@cache
def _product():
    return {
        path
        for package in ALWAYS
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@cache
def _serving(names):
    """Source files of these modules of the server and of its exports, with what they import."""
    graph = grimp.build_graph("gru_serving", cache_dir=None)
    roots = [name for name in (*names, *EXPORTING) if name in graph.modules]
    modules = set(roots).union(*map(graph.find_upstream_modules, roots))
    return {_source(REPOSITORY / "serving", name) for name in modules}


def _source(root, name):
    """The source file of a module or a package below a folder, if it is one."""
    path = root.joinpath(*name.split("."))
    tried = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in tried if file.is_file()), None)
