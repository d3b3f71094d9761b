"""Install the wheel that lies in a folder: `install.py FOLDER [ENVIRONMENT]`.

With an environment, a virtual one is made there first; without, the running Python gets it. Run by
the extension in a terminal, so pip's own words are what the user sees.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path


def main(folder: str, environment: str = "") -> int:
    """The exit status of pip, or a sentence on what is missing."""
    python = _environment(Path(environment)) if environment else sys.executable
    wheels = sorted(map(str, Path(folder).glob("apply_server-*.whl")))
    return subprocess.call([python, "-m", "pip", "install", "--upgrade", *wheels])


def _environment(path: Path) -> str:
    try:
        venv.create(path, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"{path} can't be made a virtual environment: {error}.\n"
            "On Debian and Ubuntu, install the package python3-venv and try again."
        )
    folder, name = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return str(path / folder / name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
