#!/usr/bin/env python3
"""Holds the output of `srdma plan provision --format sonic` against SONiC's YANG models, by yanglint of libyang.

    srdma plan provision --fabric dc.toml --format sonic --interfaces 'Ethernet{port}' > config.json
    tools/provision/sonic.py MODELS config.json

MODELS is the folder src/sonic-yang-models of sonic-net/sonic-buildimage. SONiC converts config_db.json to YANG in the
same way: a key `a|b` becomes the keys of a list, numbers lose their quotes. Ports are added, since a switch has them.
Exit codes: 0 valid, 1 not valid (yanglint says why), 2 wrong arguments.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import jinja2

# For each table its module, and its lists by the number of parts of their keys.
TABLES = {
    "LOOPBACK_INTERFACE": (
        "sonic-loopback-interface",
        {1: ("LOOPBACK_INTERFACE_LIST", ["name"]), 2: ("LOOPBACK_INTERFACE_IPPREFIX_LIST", ["name", "ip-prefix"])},
    ),
    "INTERFACE": (
        "sonic-interface",
        {1: ("INTERFACE_LIST", ["name"]), 2: ("INTERFACE_IPPREFIX_LIST", ["name", "ip-prefix"])},
    ),
    "LOOPBACK": ("sonic-loopback-interface", {1: ("LOOPBACK_LIST", ["name"])}),
    "PORT": ("sonic-port", {1: ("PORT_LIST", ["name"])}),
    "VRF": ("sonic-vrf", {1: ("VRF_LIST", ["name"])}),
    "SRV6_MY_LOCATORS": ("sonic-srv6", {1: ("SRV6_MY_LOCATORS_LIST", ["locator_name"])}),
    "SRV6_MY_SIDS": ("sonic-srv6", {2: ("SRV6_MY_SIDS_LIST", ["locator", "ip_prefix"])}),
    "STATIC_ROUTE": ("sonic-static-route", {2: ("STATIC_ROUTE_LIST", ["vrf_name", "prefix"])}),
}
NUMBERS = {"block_len", "node_len", "func_len", "arg_len", "speed"}


def modules(models: pathlib.Path, to: pathlib.Path) -> None:
    """All models in one folder, those of templates as SONiC's Python uses them."""
    for source in (models / "yang-models").glob("*.yang"):
        (to / source.name).write_text(source.read_text())
    for source in (models / "yang-templates").glob("*.yang.j2"):
        template = jinja2.Template(source.read_text(), trim_blocks=True)
        (to / source.stem).write_text(template.render(yang_model_type="py"))


def yang(device: dict) -> dict:
    """The tables of a device as data of the models."""
    tables = dict(device)
    ports = {key.split("|")[0] for key in device.get("INTERFACE", {})}
    tables["PORT"] = {port: {"lanes": str(number), "speed": "100000"} for number, port in enumerate(sorted(ports))}
    data: dict = {}
    for table, rows in tables.items():
        module, lists = TABLES[table]
        container = data.setdefault(f"{module}:{module}", {}).setdefault(table, {})
        for key, values in rows.items():
            parts = key.split("|")
            name, keys = lists[len(parts)]
            row = dict(zip(keys, parts))
            row.update({leaf: int(value) if leaf in NUMBERS else value for leaf, value in values.items()})
            container.setdefault(name, []).append(row)
    return data


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    models, config = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
    if not (models / "yang-models" / "sonic-srv6.yang").exists():
        print(f"{models} has no yang-models/sonic-srv6.yang: expected src/sonic-yang-models", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        modules(models, directory)
        used = sorted({module for module, _ in TABLES.values()} | {"sonic-device_metadata"})
        for name, device in config.items():
            data = directory / "data.json"
            data.write_text(json.dumps(yang(device), indent=1))
            paths = [str(directory / f"{module}.yang") for module in used]
            command = ["yanglint", "-p", folder, "-t", "config", *paths, str(data)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                print(f"{name}: {result.stderr}", file=sys.stderr)
                return 1
            print(f"{name}: {sum(len(rows) for rows in device.values())} rows valid")
    return 0


if __name__ == "__main__":
    sys.exit(main())
