"""Start nodes as processes of their own, wait until they work, stop them in order: for the demo and for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import yaml

from trace_memory_ros.nodes.parent import PARENT

ParameterValue = bool | int | float | str

# A crash in a library's machine code, too, leaves in the log where it was.
_OWN_ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", "RCUTILS_COLORIZED_OUTPUT": "0"}

READY = "activate done"
"""What every managed node logs once it is active."""
CRASHES = (-signal.SIGSEGV, -signal.SIGBUS)
"""Exit codes of a process that died in machine code."""


class NodeFailed(RuntimeError):
    """A node process ended or did not get ready; the message carries the end of its log."""


@dataclass(frozen=True)
class NodeSpec:
    """What to start: `<package>.<module>` under a name and namespace, with parameters and remappings."""

    module: str
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    remappings: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    name: str = ""
    package: str = "trace_memory_ros.nodes"

    @property
    def node_name(self) -> str:
        return self.name or self.module

    @property
    def key(self) -> str:
        """Node name with its namespace in front, if it has one: `memory_node`, `left/memory_node`."""
        return self.full_name.strip("/")

    @property
    def full_name(self) -> str:
        """Absolute node name, for services such as `<full name>/reset`."""
        return f"/{self.namespace.strip('/')}/{self.node_name}".replace("//", "/")


class NodeProcess:
    """One running node. Its output goes to a file in `log_dir` named after it.

    prefix: words before its command, such as `ip netns exec NAME`. A node that dies in machine code before it is ready
    is started once more, with a RuntimeWarning that tells where: seen once, where five nodes started together.
    """

    def __init__(
        self,
        spec: NodeSpec,
        log_dir: Path,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.spec = spec
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = log_dir / f"{spec.key.replace('/', '.')}.log"
        parameter_file = self.log_path.with_suffix(".yaml")
        parameter_file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(spec.parameters)}}))
        command = [*prefix, sys.executable, "-m", f"{spec.package}.{spec.module}", "--ros-args"]
        command += ["-r", f"__node:={spec.node_name}", "--params-file", str(parameter_file)]
        if spec.namespace:
            command += ["-r", f"__ns:=/{spec.namespace.strip('/')}"]
        for old, new in spec.remappings.items():
            command += ["-r", f"{old}:={new}"]
        self._command = command
        self._environment = {**os.environ, **_OWN_ENVIRONMENT, PARENT: str(os.getpid()), **(environment or {})}
        self._starts = 0
        self.log_path.write_bytes(b"")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        with self.log_path.open("ab") as log:
            # A session of its own: Ctrl-C at the terminal reaches the parent alone, which then stops us in order.
            return subprocess.Popen(
                self._command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def cpu_s(self) -> float:
        """Processor time used so far, user and system, seconds. Raises `NodeFailed` once the process is gone."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError as error:
            raise NodeFailed(self._story("has ended, so its processor time is unknown")) from error
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until the node logged that it is active. Raises `NodeFailed` with the log's end otherwise."""
        deadline = time.monotonic() + timeout_s
        while READY not in self.log:
            if not self.running:
                ended = self._story(f"ended with exit code {self.returncode}")
                if self.returncode not in CRASHES or self._starts > 1:
                    raise NodeFailed(ended)
                warnings.warn(f"started again: {ended}", RuntimeWarning, stacklevel=2)
                self._process = self._start()
            if time.monotonic() > deadline:
                raise NodeFailed(self._story(f"was not active within {timeout_s:g} s"))
            time.sleep(0.05)

    def wait_log(self, text: str, timeout_s: float = 20.0) -> None:
        """Wait until `text` stands in the log. Raises `NodeFailed` otherwise."""
        deadline = time.monotonic() + timeout_s
        while text not in self.log:
            if time.monotonic() > deadline:
                raise NodeFailed(self._story(f"did not log {text!r} within {timeout_s:g} s"))
            time.sleep(0.05)

    def stop(self, patience_s: float = 5.0) -> int:
        """Interrupt, then terminate, then kill; returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if not self.running:
                break
            self._process.send_signal(number)
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
        return self._process.wait()

    def _story(self, what: str) -> str:
        tail = "\n".join(self.log.splitlines()[-20:])
        return f"{self.spec.full_name} {what}; the end of {self.log_path}:\n{tail}"


class NodeGroup:
    """Several node processes, by `NodeSpec.key`, started and always stopped together (a context manager)."""

    def __init__(self, specs: Iterable[NodeSpec], log_dir: Path, environment: Mapping[str, str] | None = None) -> None:
        self.processes: dict[str, NodeProcess] = {}
        try:
            for spec in specs:
                self.processes[spec.key] = NodeProcess(spec, log_dir, environment)
        except BaseException:
            self.stop()
            raise

    def __getitem__(self, name: str) -> NodeProcess:
        return self.processes[name]

    def __enter__(self) -> NodeGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_ready(self, timeout_s: float = 60.0, report: Callable[[str], None] | None = None) -> None:
        """Wait until all are active. Raises `NodeFailed` for the first that is not."""
        deadline = time.monotonic() + timeout_s
        for process in self.processes.values():
            process.wait_ready(max(0.1, deadline - time.monotonic()))
            if report:
                report(process.spec.full_name)

    def check_alive(self) -> None:
        """Raise `NodeFailed` when one of them has ended."""
        for process in self.processes.values():
            if not process.running:
                raise NodeFailed(process._story(f"ended with exit code {process.returncode}"))

    def stop(self) -> None:
        for process in self.processes.values():
            if process.running:
                process._process.send_signal(signal.SIGINT)
        for process in self.processes.values():
            process.stop()
