"""A training loop that publishes its weights after each step to replicas, which compute with them.

    python3 weights.py train --replicas 8                  # prints the number of the group
    python3 weights.py serve 1                             # a replica; it may start later, and start again
    python3 weights.py measure --rate 200                  # both in a lab, beside gloo's broadcast (root)

A version of the group is the weights of a step, as they are: the replica computes with its slot, without a copy. Each
side prints the answer of the model to the same question, which differs for every step. With `--gloo FILE` the same by
torch.distributed's gloo, whose replicas have to be there from the start to the end.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import timedelta

WIDTH = 2048
LAYER_MIB = WIDTH * WIDTH * 4 >> 20
TIMEOUT = 600.0


def say(**words):
    print(json.dumps(words), flush=True)


def model(mib):
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    layers = []
    for _ in range(max(1, mib // LAYER_MIB)):
        layers += [torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers)


def answer(layers, question):
    """What the weights make of a question; `layers` are tensors."""
    import torch

    with torch.no_grad():
        for weights in layers:
            question = torch.tanh(torch.nn.functional.linear(question, weights))
    return float(question.double().sum())


def questions(batch):
    import torch

    return torch.linspace(-1, 1, batch * WIDTH).reshape(batch, WIDTH)


class Groups:
    """Weights by a group: the receivers may change, and training goes on while a version is on its way."""

    def __init__(self, arguments, layers):
        import srdma

        octets = {str(number): layer.numel() * 4 for number, layer in enumerate(layers)}
        self.source = srdma.Device().create_group(
            buffers=list(octets.values()), keep_current=True, stall=20, not_ready=TIMEOUT, proxy=arguments.proxy
        )
        say(group=self.source.group)
        self.source.commit(arguments.replicas, TIMEOUT)
        self.copies = [[layer.clone() for layer in layers] for _ in range(2)]
        self.waits = arguments.wait
        self.step = 0

    def send(self, step, layers):
        # The library keeps the current version for replicas that join late: its buffers are free when the next one is
        # published.
        if self.step:
            self.source.wait(self.step, TIMEOUT)
        copy = self.copies[step % 2]
        for to, layer in zip(copy, layers):
            to.copy_(layer)
        begin = time.monotonic()
        self.source.publish(step, {str(number): layer for number, layer in enumerate(copy)})
        self.step = step
        if self.waits:
            self.source.wait(step, TIMEOUT)
        return time.monotonic() - begin

    def end(self):
        self.source.wait(self.step, TIMEOUT)
        self.source.close()


class Gloo:
    """Weights by gloo: every rank takes part in each broadcast."""

    def __init__(self, arguments, rank):
        import torch.distributed as dist

        os.environ["GLOO_SOCKET_IFNAME"] = interface()
        dist.init_process_group(
            "gloo",
            init_method=f"file://{arguments.gloo}",
            rank=rank,
            world_size=arguments.replicas + 1,
            timeout=timedelta(seconds=TIMEOUT),
        )
        self.dist = dist

    def send(self, step, layers):
        # The replicas have computed with the version before.
        self.dist.barrier()
        begin = time.monotonic()
        for layer in layers:
            self.dist.broadcast(layer, src=0)
        self.dist.barrier()
        return time.monotonic() - begin

    receive = send

    def end(self):
        self.dist.destroy_process_group()


def interface():
    """The interface of the host's global address."""
    lines = pathlib.Path("/proc/net/if_inet6").read_text().splitlines()
    return next(fields[5] for fields in map(str.split, lines) if fields[3] == "00")


def train(arguments):
    import torch

    network = model(arguments.mib)
    layers = [parameter.data for parameter in network.parameters()]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    sender = Gloo(arguments, 0) if arguments.gloo else Groups(arguments, layers)
    question = questions(arguments.batch)
    for step in range(1, arguments.steps + 1):
        loss = (network(question) - question.flip(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds = sender.send(step, layers)
        say(step=step, loss=round(float(loss), 6), answer=answer(layers, question[:1]), seconds=round(seconds, 3))
        time.sleep(arguments.pause)
    sender.end()


def serve(arguments):
    question = questions(arguments.batch)
    if arguments.gloo:
        layers = [parameter.data for parameter in model(arguments.mib).parameters()]
        receiver = Gloo(arguments, arguments.rank)
        for step in range(1, arguments.steps + 1):
            receiver.receive(step, layers)
            compute(step, layers, question)
        receiver.end()
        return

    import srdma
    import torch

    torch.set_num_threads(1)
    # The tensors are only read.
    warnings.filterwarnings("ignore", message="The given buffer is not writable")
    with srdma.Device().join(arguments.group) as receiver:
        for version in receiver:
            with version:
                # In place: the tensors are the slot's memory, which is free for a later version afterwards.
                views = [torch.frombuffer(version[name], dtype=torch.float32) for name in version]
                compute(version.number, [view.reshape(WIDTH, WIDTH) for view in views], question)
                del views


def compute(step, layers, question):
    for _ in range(2):
        answer(layers, question)
    say(step=step, answer=answer(layers, question[:1]))


class Lab:
    """The lab `eight-receivers`, with a rate on each link."""

    HOSTS = [f"R{number}" for number in range(1, 9)]

    def __init__(self, arguments, directory):
        self.program = arguments.srdma
        self.directory = directory
        text = pathlib.Path(__file__).parent.parent.joinpath("labs/eight-receivers.toml").read_text()
        if arguments.rate:
            text = re.sub(r"(?m)^ends = ", f"rate_bits_per_s = {arguments.rate * 1_000_000}\nends = ", text)
        self.file = directory / "weights.toml"
        self.file.write_text(text)
        subprocess.run([self.program, "lab", "up", self.file], check=True, stdout=subprocess.DEVNULL)

    def starts(self, host, name, *words):
        output = open(self.directory / name, "w")
        command = [self.program, "lab", "shell", self.file, host, "--", sys.executable, __file__, *map(str, words)]
        return subprocess.Popen(command, stdout=output)

    def lines(self, name):
        return [json.loads(line) for line in (self.directory / name).read_text().splitlines()]

    def down(self):
        subprocess.run([self.program, "lab", "down", self.file], check=True, stdout=subprocess.DEVNULL)


def measure(arguments):
    """Rounds of both ways in turn; of each the seconds for a version, and processor seconds of each side."""
    # A measurement that is ended takes its lab down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab(arguments, pathlib.Path(directory))
        rounds = {"gloo": [], "srdma": []}
        try:
            for number in range(arguments.rounds):
                for way, found in rounds.items():
                    found.append(one_round(lab, way, arguments, f"{number}-{way}"))
                    say(round=number + 1, way=way, **found[-1])
        finally:
            lab.down()
    result = {"mib": arguments.mib, "replicas": len(lab.HOSTS), "rate_mbit_per_s": arguments.rate or None}
    for way, found in rounds.items():
        result[way] = {key: [min(values), statistics.median(values)] for key, values in by_key(found).items()}
    pairs = zip(result["gloo"]["seconds"], result["srdma"]["seconds"])
    result["times_as_fast"] = [round(by_gloo / by_group, 2) for by_gloo, by_group in pairs]
    say(**result, note="each pair is the least and the median")


def by_key(rounds):
    return {key: [one[key] for one in rounds] for key in rounds[0]}


def one_round(lab, way, arguments, name):
    common = ["--mib", arguments.mib]
    source = ["train", *common, "--steps", arguments.steps, "--replicas", len(lab.HOSTS), "--wait"]
    if way == "gloo":
        store = ["--gloo", lab.directory / f"{name}-store"]
        source += store
        replica = ["serve", *common, "--steps", arguments.steps, "--replicas", len(lab.HOSTS), *store, "--rank"]
    trainer = lab.starts("S", f"{name}-S", *source)
    if way == "srdma":
        while not lab.lines(f"{name}-S"):
            if trainer.poll() is not None:
                raise SystemExit(f"{trainer.args} failed with {trainer.returncode}")
            time.sleep(0.1)
        replica = ["serve", lab.lines(f"{name}-S")[0]["group"]]
    replicas = [
        lab.starts(host, f"{name}-{host}", *replica, *([rank] if way == "gloo" else []))
        for rank, host in enumerate(lab.HOSTS, 1)
    ]
    used = [processor_seconds(process) for process in [trainer, *replicas]]
    answers = {line["step"]: line["answer"] for line in lab.lines(f"{name}-S") if "step" in line}
    for host in lab.HOSTS:
        found = {line["step"]: line["answer"] for line in lab.lines(f"{name}-{host}")}
        if found != answers:
            raise SystemExit(f"{way}: {host} answered {found}, and the trainer {answers}")
    # The first version has what happens once, such as connections.
    seconds = [line["seconds"] for line in lab.lines(f"{name}-S") if line.get("step", 0) > 1]
    return {
        "seconds": statistics.median(seconds),
        "source_processor_seconds": round(used[0] / arguments.steps, 2),
        "replica_processor_seconds": round(statistics.mean(used[1:]) / arguments.steps, 2),
    }


def processor_seconds(process):
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{process.args} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(required=True, metavar="ROLE")

    def role(name, run, help):
        added = roles.add_parser(name, help=help)
        added.add_argument("--mib", type=int, default=256, help="of weights [default: 256]")
        added.add_argument("--steps", type=int, default=5, help="of training [default: 5]")
        added.add_argument("--batch", type=int, default=8, help="questions at once [default: 8]")
        added.set_defaults(run=run)
        return added

    def with_gloo(added):
        added.add_argument("--replicas", type=int, default=8, help="to wait for [default: 8]")
        added.add_argument("--gloo", metavar="FILE", help="by gloo, whose ranks meet in this file")

    source = role("train", train, "train, and publish the weights after each step")
    with_gloo(source)
    source.add_argument("--proxy", help="Proxy Address of the group [default: one of the tenant's pool]")
    source.add_argument("--pause", type=float, default=0, help="seconds after each step [default: 0]")
    source.add_argument("--wait", action="store_true", help="do not train while a version is on its way, as with gloo")
    replica = role("serve", serve, "compute with the weights of each step")
    replica.add_argument("group", type=int, nargs="?", help="the group's number, which `train` prints")
    with_gloo(replica)
    replica.add_argument("--rank", type=int, help="with gloo: of this replica, from 1 on")
    both = role("measure", measure, "measure both ways in the lab eight-receivers; needs root")
    both.add_argument("--rate", type=int, default=0, help="Mbit/s of each link [default: not limited]")
    both.add_argument("--rounds", type=int, default=3, help="of each way [default: 3]")
    both.add_argument("--srdma", default="srdma", help="the program [default: the one in the path]")
    arguments = parser.parse_args()
    if arguments.run is serve and (arguments.gloo is None) == (arguments.group is None):
        parser.error("either the group's number, or --gloo with --rank")
    arguments.run(arguments)


if __name__ == "__main__":
    main()
