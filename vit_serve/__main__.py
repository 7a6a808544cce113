"""The command `vit-serve`, or `python -m vit_serve`: each of its words is a command of its own."""

import sys
from pathlib import Path

from vit_serve.extra import check_export, installing

USAGE = """\
usage: vit-serve COMMAND ...

  serve [MODEL] [--port N ...]  serve the demo, a bundle, or a checkpoint: a file, a folder, or hf://org/name, which is
                                exported once, into ~/.cache/vit-serve
  export                        turn a checkpoint into a bundle, with other labels, precisions and sizes
  inspect CHECKPOINT            show what a checkpoint is
  fit CHECKPOINT                learn the labels of your own images
  judge BUNDLE                  measure which map to believe on your own images
  client SERVER IMAGES...       send images to a service, and write the labels that it gives them

`vit-serve COMMAND --help` lists what it takes. All but serve and client need the extra export, which has PyTorch:
"""
OF_EXPORT = ("export", "inspect", "fit", "judge")
COMMANDS = ("serve", *OF_EXPORT, "client")


def main() -> None:
    command, *arguments = sys.argv[1:] or ["--help"]
    if command == "serve":
        from app.__main__ import main as serve

        if arguments and not arguments[0].startswith("-"):
            from app.server import settings_of
            from vit_serve.exported import bundle_of

            settings_of(arguments[1:])  # before an export, which takes minutes
            arguments = ["--bundle", str(bundle_of(arguments[0])), *arguments[1:]]
        serve(arguments)
    elif command in OF_EXPORT:
        if "--help" not in arguments:
            check_export()
        from export.__main__ import main as export

        export(arguments if command == "export" else [command, *arguments])
    elif command == "client":
        sys.path.append(str(Path(__file__).parents[1] / "client"))  # where it is in a clone
        from vit_serve_client.__main__ import run

        run(arguments, program="vit-serve client")
    elif command == "--version":
        from app.settings import VERSION

        print(f"vit-serve {VERSION}")  # noqa: T201
    elif command in ("--help", "-h"):
        print(USAGE + installing("export"))  # noqa: T201
    else:
        from app.errors import is_meant

        sys.exit(f"{command} is not a command{is_meant(command, COMMANDS) or '; `vit-serve --help` lists them'}")


if __name__ == "__main__":
    main()
