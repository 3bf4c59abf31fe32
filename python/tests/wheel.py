"""A call by the installed package: `.ci/python` runs this with an environment that has a wheel, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import midflight


def main() -> None:
    package = Path(midflight.__file__).parent
    assert Path(sys.prefix).resolve() in package.resolve().parents, f"{package} is not what was installed"
    assert (package / "py.typed").exists(), "types of the package are not seen without this file"
    command = [os.environ["MIDFLIGHT"], "up", "--listen", "127.0.0.1:0", "--http", "off", "--python", sys.executable]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout
            switch = up.stdout.readline().split()[2].rstrip(",")
            with midflight.Client(switch) as client:
                assert client.submit(pow, 2, 10).result(timeout=60) == 1024
                assert list(client.map(lambda n: n + 1, range(3))) == [1, 2, 3]
        finally:
            up.terminate()


if __name__ == "__main__":  # pytest imports it for doctests
    main()
