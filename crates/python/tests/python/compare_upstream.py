"""Compares the stubs with the packages that they stand for: DIRECTORY, into which their wheels are unpacked.

    pip download --no-deps verl==0.9.1 vllm==0.33.0 checkpoint-engine==0.4.2 sglang==0.5.23 torch==2.14.0
    for wheel in *.whl; do unzip -q -d unpacked "$wheel"; done
    python3 compare_upstream.py unpacked

Nothing of them is imported. Each difference is a line, and the exit code is 1 if there is one.
"""

import ast
import sys
from pathlib import Path

STUBS = Path(__file__).parent / "stubs"
#: Modules of the stubs, and where upstream has them if it is elsewhere.
MODULES = {
    "verl/checkpoint_engine/base.py": "",
    "vllm/distributed/weight_transfer/base.py": "",
    "vllm/distributed/weight_transfer/factory.py": "",
    "vllm/model_executor/model_loader/mtp_validation.py": "",
    "vllm/model_executor/model_loader/reload.py": "vllm/model_executor/model_loader/reload/layerwise.py",
    "checkpoint_engine/distributed/base.py": "",
}
#: Functions whose calls are reproduced by the tests, with their parameters.
FUNCTIONS = {
    ("sglang/srt/utils/common.py", "init_custom_process_group"): (
        "backend init_method timeout world_size rank store group_name pg_options device_id"
    ),
    ("torch/distributed/distributed_c10d.py", "Backend.register_backend"): (
        "cls name func extended_api devices * _backend_type"
    ),
}
#: What stubs have for the tests: they record calls.
OWN = {"is_disabled", "reloading"}

def parameters(function):
    """Names as in the head of a function; those with a default end with `=`."""
    found = function.args
    positional = [*found.posonlyargs, *found.args]
    first = len(positional) - len(found.defaults)
    names = [argument.arg + "=" * (place >= first) for place, argument in enumerate(positional)]
    if found.vararg or found.kwonlyargs:
        names.append("*" + (found.vararg.arg if found.vararg else ""))
    for argument, default in zip(found.kwonlyargs, found.kw_defaults):
        names.append(argument.arg + "=" * (default is not None))
    return [*names, f"**{found.kwarg.arg}"] if found.kwarg else names


def decorators(node):
    return {ast.unparse(found) for found in node.decorator_list}


def definitions(text):
    """Functions, fields and classes of a module by their qualified names."""
    found = {}

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = node
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[prefix + node.target.id] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[prefix + node.targets[0].id] = node

    visit(ast.parse(text).body, "")
    return found


def is_private(name):
    known = {"__init__", "_registry", "_BACKEND_INSTANCE"}
    return any(part.startswith("_") and part not in known for part in name.split("."))


def differences(stub, upstream):
    """Sentences on what the stub has otherwise."""
    for name, own in stub.items():
        if name.split(".")[0] in OWN or is_private(name) or "TypeVar" in ast.unparse(own):
            continue
        real = upstream.get(name)
        if real is None:
            yield f"{name} is not in upstream"
        elif isinstance(own, ast.FunctionDef | ast.AsyncFunctionDef):
            if not isinstance(real, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name} is no function in upstream"
            elif parameters(own) != parameters(real) and "staticmethod" not in decorators(own):
                yield f"{name}({', '.join(parameters(own))}) is ({', '.join(parameters(real))}) in upstream"
            # What upstream declares as asynchronous may be an asynchronous generator here.
            elif ("abstractmethod" in decorators(own)) != ("abstractmethod" in decorators(real)):
                yield f"{name}: only one of the two is abstract"
    classes = {name for name, node in stub.items() if isinstance(node, ast.ClassDef)}
    for name, real in upstream.items():
        parent, _, last = name.rpartition(".")
        if parent not in classes or name in stub:
            continue
        is_function = isinstance(real, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and "abstractmethod" in decorators(real):
            yield f"{name} is an abstract method of upstream"
        elif isinstance(real, ast.AnnAssign) and "dataclass" in " ".join(decorators(stub[parent])) and real.value is None:
            yield f"{name} is a field of upstream without a default"


def main(directory):
    count = 0
    for module, elsewhere in MODULES.items():
        upstream = (directory / (elsewhere or module)).read_text()
        for text in differences(definitions((STUBS / module).read_text()), definitions(upstream)):
            print(f"{module}: {text}")
            count += 1
    for (module, name), wanted in FUNCTIONS.items():
        found = definitions((directory / module).read_text()).get(name)
        names = " ".join(text.rstrip("=") for text in parameters(found)) if found else "nothing"
        if names != wanted:
            print(f"{module}: {name} has {names}")
            count += 1
    print(f"{len(MODULES)} modules, {len(FUNCTIONS)} functions, {count} differences")
    return count != 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
