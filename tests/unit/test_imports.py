"""Tests of the structure of the source: which package may import which, where processes are started and SQL is used."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"
# Names that ``import fslab`` exports and that other packages use.
EXPORTED = {"Observer", "__version__", "clean", "load", "open_store", "shipped_studies"}


def table(text: str) -> dict[str, set[str]]:
    """Return what each package may import, by lines as ``name: others``; further lines of a name are indented."""
    lines = text.strip().replace("\n ", " ").splitlines()
    return {name: set(others.split()) for name, _, others in (line.partition(":") for line in lines)}


# A package may also import itself, and the basic modules, which every package may import (stats: STATS).
PACKAGES = table("""
__main__: cli system
cli: analysis api campaign crash explain feasibility fleet machine plan report serve store study
serve: api campaign report store
fleet: campaign claims feasibility machine plan storage store study system workloads
api: analysis answers applications campaign claims crash explain faults feasibility features machine plan report
    storage store study system tracing workloads
campaign: analysis claims crash feasibility features machine plan probes storage store study system tracing validity
    workloads
report: analysis answers claims explain features machine stats store validity workloads
explain: analysis stats storage store workloads
store: claims system
plan: feasibility machine storage study workloads
study: claims crash machine storage validity workloads
claims: analysis answers stats workloads
analysis: answers machine stats workloads
answers: stats
feasibility: machine probes storage system validity workloads
machine: storage system
workloads: applications crash faults system validity
faults: crash system
crash: applications storage system validity
applications: storage system
storage: system
probes: system
features: system
tracing: system
validity: stats
stats:
system:
""")
WORDS = table("""
errors:
units:
names:
untrusted_text: system
registry: errors plugins
plugins: errors system
safe_output: errors names system
cell: names units
trial_record: cell names units
stopping_settings: cell
filesystem_abilities: units
scaling: cell units
""")
ALLOWED = {**PACKAGES, **WORDS}
STATS = {"units"}
PARAMETERS = 15
# Maximum number of class names that are used more than once.
SAME_NAMES = 8
# Maximum number of lines of a registered file. The file of a tool also contains the parser of its output. Features,
# mechanisms and rules share a file by subject.
REGISTERED = {
    "storage/filesystems": 200,
    "storage/layouts": 120,
    "storage/media": 190,
    "workloads": 350,
    "probes": 210,
    "features": 250,
    "applications": 350,
    "explain/mechanisms": 250,
    "claims/requirements": 150,
    "validity/trial_warnings": 250,
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


def modules() -> list[Path]:
    return sorted(path for path in (SOURCE / "fslab").rglob("*.py"))


@cache
def imports(path: Path) -> list[str]:
    """Return the dotted names of everything that a file imports, also inside functions."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def package(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if parts[0] == "fslab" and len(parts) > 1 else None


def home(path: Path) -> str:
    return path.relative_to(SOURCE / "fslab").parts[0].removesuffix(".py")


def forbidden(path: Path) -> set[str]:
    """Return the packages that a file imports and may not."""
    here = home(path)
    if here == "__init__":
        return set()
    words = STATS if here == "stats" else set(WORDS)
    allowed = ALLOWED[here]
    if here not in WORDS:
        allowed = allowed | {here, *words}
    used = {name for dotted in imports(path) if (name := package(dotted))}
    return used - allowed - EXPORTED


def test_the_design_has_every_package() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DESIGN.read_text("utf-8"), re.MULTILINE)
    assert {home(path) for path in modules()} - {"__init__"} == set(ALLOWED) == set(rows)
    packages = [row for row in rows if row in PACKAGES]
    for number, name in enumerate(packages):
        assert PACKAGES[name] <= set(packages[number + 1 :]), "a row names what is above it"


def test_documents_name_files_that_exist() -> None:
    files = {path.relative_to(SOURCE / "fslab").as_posix() for path in modules()}
    for document in map(DESIGN.with_name, ("design.md", "statistics.md", "adding-an-application.md")):
        for named in re.findall(r"`((?:\w+/)*\w+\.py)`", document.read_text("utf-8")):
            found = [each for each in files if f"/{each}".endswith(f"/{named}")]
            assert found or (DESIGN.parents[1] / named).exists(), f"{document.name}: {named}"


def test_docstrings_and_comments_name_modules_that_exist() -> None:
    """``package.module`` or ``package.module.name``; a name that is none of a module stands in its text."""
    texts = dict[str, str]()
    for path in modules():
        parts = path.relative_to(SOURCE / "fslab").with_suffix("").parts
        texts[".".join(parts).removesuffix(".__init__")] = path.read_text("utf-8")
    missing = list[tuple[str, str]]()
    for where, text in texts.items():
        for named in re.findall(r"``(?:fslab\.)?([a-z_]+(?:[./]\w+)+)``", text):
            dotted = named.replace("/", ".").removesuffix(".py")
            known, rest = dotted, ""
            while known and known not in texts:
                known, _, rest = known.rpartition(".")
            if "." in dotted and known and rest and not re.search(rf"\b{rest}\b", texts[known]):
                missing.append((where, named))
    assert missing == []


def test_imports_go_one_way() -> None:
    found = {path: forbidden(path) for path in modules()}
    assert {str(path.relative_to(SOURCE)): names for path, names in found.items() if names} == {}


def registered() -> list[Path]:
    return [
        path
        for directory in REGISTERED
        for path in sorted((SOURCE / "fslab" / directory).glob("*.py"))
        if not path.name.startswith("_")
    ]


def siblings_used(path: Path) -> set[str]:
    """Return the registered files of the same package that a registered file imports."""
    names = {each.stem for each in path.parent.glob("*.py") if not each.name.startswith("_")} - {path.stem}
    dotted_home = ".".join(path.parent.relative_to(SOURCE).parts)
    siblings = {f"{dotted_home}.{name}" for name in names}
    return {
        dotted for dotted in imports(path) if any(dotted == s or dotted.startswith(f"{s}.") for s in siblings)
    }


def test_a_registered_file_knows_no_other_and_is_small() -> None:
    """What several of them share goes to a file whose name begins with an underscore."""
    found = {path: siblings_used(path) for path in registered()}
    assert {str(path.relative_to(SOURCE)): names for path, names in found.items() if names} == {}
    lengths = {
        path.relative_to(SOURCE / "fslab"): len(path.read_text().splitlines()) for path in registered()
    }
    assert {str(path): n for path, n in lengths.items() if n > REGISTERED[str(path.parent)]} == {}


def loaded(dotted: str, found: set[str]) -> set[str]:
    """Add the modules that importing this one loads, as far as they are fslab's."""
    place = SOURCE.joinpath(*dotted.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if dotted in found or not path.is_file():
        return found
    found.add(dotted)
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                loaded(name, found)
    return found


def test_the_command_line_answers_without_loading_the_library() -> None:
    """Else each command takes a second longer, also ``--help``."""
    found = loaded("fslab.cli", set())
    assert "fslab.cli.run" in found
    assert {package(each) for each in found} - {None} == {
        "cli", "errors", "names", "safe_output", "store", "system", "units",
    }  # fmt: skip


def calls(path: Path) -> list[str]:
    return [ast.unparse(node.func) for node in nodes(path) if isinstance(node, ast.Call)]


def test_only_one_file_starts_processes() -> None:
    forbidden = (
        "subprocess",
        "os.fork",
        "os.exec",
        "os.system",
        "os.spawn",
        "os.popen",
        "os.posix_spawn",
        "pty",
    )
    for path in modules():
        if path == SOURCE / "fslab/system/proc.py":
            continue
        assert not [name for name in [*imports(path), *calls(path)] if name.startswith(forbidden)], path


def test_no_python_that_is_started_imports_from_where_it_runs() -> None:
    """Without -P, ``-m`` and ``-c`` import from the current directory, which others may be able to write to."""
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.List | ast.Tuple) and "sys.executable" in map(ast.unparse, node.elts):
                words = list(map(ast.unparse, node.elts))
                assert words[words.index("sys.executable") + 1] == "'-P'", path


def test_only_the_store_speaks_sql() -> None:
    for path in modules():
        if home(path) != "store":
            assert not [name for name in imports(path) if name.startswith(("sqlalchemy", "alembic"))], path


def test_one_class_name_means_one_thing() -> None:
    """A reader needs the module to understand a class name that exists twice. Therefore few such names are allowed."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert len(twice) <= SAME_NAMES, twice


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def used_attributes(path: Path) -> list[str]:
    """Return the dotted names of attributes of imported names, for example ``fslab.a.module._name``."""
    known = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return [
        f"{known[node.value.id]}.{node.attr}"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known
    ]


def foreign_private_names(path: Path) -> Iterator[str]:
    """Yield the private names (``_name``) of other packages that a file uses."""
    here = path.relative_to(SOURCE).parent.parts
    for dotted in [*imports(path), *used_attributes(path)]:
        parts = dotted.split(".")
        owners = [tuple(parts[:depth]) for depth, part in enumerate(parts) if is_private(part)]
        if parts[0] == "fslab" and any(here[: len(each)] != each != (*here, path.stem) for each in owners):
            yield f"{path.relative_to(SOURCE)} uses {dotted}"


def test_no_package_uses_what_is_private_to_another() -> None:
    assert [found for path in modules() for found in foreign_private_names(path)] == []


# Besides the package ``study``, only these files may parse the options of a medium, a layout or a workload. All other
# code gets the parsed options from them.
PARSERS = {"storage/parsed_stack.py", "workloads/__init__.py"}


def test_options_are_parsed_in_one_place() -> None:
    for path in modules():
        where = str(path.relative_to(SOURCE / "fslab"))
        called = {
            node.func.attr
            for node in nodes(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if home(path) != "study" and where not in PARSERS:
            assert not called & {"parse_options", "parse_parameters"}, f"{where}: ask for the parsed form"


def test_the_plan_and_the_study_touch_nothing() -> None:
    for path in modules():
        if home(path) in {"plan", "study"}:
            assert not [
                name
                for name in imports(path)
                if name.startswith(("fslab.system", "socket", "os.", "shutil"))
                or (name == "os" and home(path) == "plan")  # a study is a file, which is read
            ], path


@cache
def defined(module: str) -> set[str]:
    """Return what a module of the library defines itself, not what it imports from others."""
    tree = parsed(SOURCE / f"{module.replace('.', '/')}.py")
    named = (node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    values = (
        target
        for node in tree.body
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Name | ast.Attribute)
        for target in node.targets
    )
    return {*named, *(target.id for target in values if isinstance(target, ast.Name))}


def test_the_library_passes_nothing_on() -> None:
    """Who needs a function or a value that is not the library's own imports it from where it is defined."""
    for path in modules():
        for dotted in {*imports(path), *used_attributes(path)}:
            *home_of_name, name = dotted.split(".")
            module = ".".join(home_of_name)
            if module.startswith("fslab.api.") and module.count(".") == 2:
                assert name in defined(module), f"{path} imports {name} from {module}"


def test_a_campaign_is_made_in_one_place() -> None:
    """``store.rows`` reads stored ones."""
    made = [str(path.relative_to(SOURCE / "fslab")) for path in modules() if "Campaign" in calls(path)]
    assert made == ["campaign/launch.py", "store/rows.py"]


def test_no_command_has_too_many_parameters() -> None:
    """Options that belong together are a group (``cli/option_groups.py``)."""
    for path in modules():
        for node in nodes(path) if home(path) == "cli" else ():
            if isinstance(node, ast.FunctionDef):
                taken = len(node.args.args) + len(node.args.kwonlyargs)
                assert taken <= PARAMETERS, f"{path}: {node.name}"


def test_one_module_compares() -> None:
    """``stats`` also describes samples and series; what compares two of them is used by ``answers`` only.

    One module divides a ratio, instead of comparing two stacks.
    """
    modules_that_describe = {"median", "multimodality", "relative_drift", "time_series"}
    assert modules_that_describe < {path.stem for path in (SOURCE / "fslab" / "stats").glob("*.py")}
    describing = {"Interval", "Reason", *modules_that_describe}
    found = {
        str(path.relative_to(SOURCE)): names
        for path in modules()
        if home(path) not in {"answers", "stats"}
        and (names := {d.split(".")[2] for d in imports(path) if d.startswith("fslab.stats.")} - describing)
    }
    assert found == {"fslab/explain/ablation.py": {"distributions"}}
