"""`python -m app.images.compiler`: compile resize.c, where there is a C compiler. Needs the standard library alone.

Nothing fails without one: Pillow then resizes, to the same pixels. The name of the compiled file has a hash of the
source and of how it is compiled, so a file of another version is never loaded.
"""

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).with_name("resize.c")
COMPILER = "cc"  # CC in the environment names another
OPTIONS = ("-O3", "-fwrapv", "-fPIC", "-shared")
LIBRARIES = ("-lm",)


def library_path() -> Path:
    """Where the compiled file of this source is, if there is one, for this Python and this kind of machine."""
    made_of = SOURCE.read_bytes() + repr((OPTIONS, LIBRARIES)).encode()
    return SOURCE.with_name(f"resize-{hashlib.sha256(made_of).hexdigest()[:16]}{_suffix()}")


def main() -> None:
    library = library_path()
    if library.exists():
        return
    try:
        compile_to(library)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        sys.stderr.write(f"Pillow will resize images, which takes longer: resize.c is not compiled. {reason.strip()}\n")


def compile_to(library: Path) -> None:
    """Put the library there, and remove those of other sources. Processes may do this at once: each puts a whole file.

    Raises CalledProcessError, and OSError where there is no compiler or the folder may not be written.
    """
    command = shlex.split(os.environ.get("CC", COMPILER))
    with TemporaryDirectory(dir=library.parent, prefix=".resize-") as folder:
        made = Path(folder) / library.name
        command += [*OPTIONS, "-o", str(made), str(SOURCE), *LIBRARIES]
        subprocess.run(command, check=True, capture_output=True, text=True)
        made.replace(library)
    for other in library.parent.glob(f"resize-*{_suffix()}"):
        if other != library:
            other.unlink(missing_ok=True)


def _suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


if __name__ == "__main__":
    main()
