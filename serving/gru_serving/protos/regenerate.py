"""Write the `_pb2.py` and `_pb2.pyi` files again: `python -m gru_serving.protos.regenerate`.

protoc compiles the `.proto` files to descriptors and type stubs. The modules are written here, so
that they register in `gru_serving.protos.pool` instead of protobuf's default pool and do not depend
on the versions of protoc or the protobuf runtime. Needs grpcio-tools.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2

HERE = Path(__file__).resolve().parent
PACKAGE = "gru_serving/protos"
STUB_HEAD = '# mypy: disable-error-code="type-arg"\n'


def descriptors(pyi_out: Path | None = None) -> list[descriptor_pb2.FileDescriptorProto]:
    """Compile the `.proto` files.

    Args:
        pyi_out: Root under which to write the type stubs.

    Returns:
        One descriptor per file.

    Raises:
        RuntimeError: The compiler protoc is missing or refused a file; the message has its output.
    """
    sources = sorted(f"{PACKAGE}/{path.name}" for path in HERE.glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "descriptors.bin"
        # protoc runs in a separate process, since it crashes in one that has loaded TensorFlow.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE.parent.parent}"]
        command += [f"--descriptor_set_out={out}"]
        if pyi_out is not None:
            command += [f"--pyi_out={pyi_out}"]
        done = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"protoc (of grpcio-tools) failed: {done.stderr.strip()}")
        return list(descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file)


def module_text(file: descriptor_pb2.FileDescriptorProto) -> str:
    """Return the generated module of one file."""
    source = Path(file.name).name
    imports = sorted(
        Path(dependency).stem + "_pb2"
        for dependency in file.dependency
        if dependency.startswith(PACKAGE)
    )
    lines = [f'"""Generated from {source} by gru_serving.protos.regenerate: do not edit."""', ""]
    lines += [f"from gru_serving.protos import {module}" for module in imports]
    lines += ["from gru_serving.protos import pool", "", "pool.define(", "    globals(),"]
    serialized = file.SerializeToString(deterministic=True)
    lines += [f"    {serialized[i : i + 60]!r}" for i in range(0, len(serialized), 60)]
    return "\n".join([*lines, ")", ""])


def main(argv: list[str] | None = None) -> int:
    """Regenerate the files; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m gru_serving.protos.regenerate", description=__doc__
    )
    parser.parse_args(argv)
    try:
        files = descriptors(pyi_out=HERE.parent.parent)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    for file in files:
        target = HERE / f"{Path(file.name).stem}_pb2.py"
        scratch = target.with_suffix(".tmp")
        scratch.write_text(module_text(file))
        scratch.replace(target)
        stub = target.with_suffix(".pyi")
        stub.write_text(f"{STUB_HEAD}{stub.read_text()}")
    print(f"{len(files)} modules written to {HERE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
