"""`python -m app.client`."""

import sys

if __name__ == "__main__":
    try:
        from app.client.command import main
    except ModuleNotFoundError as missing:
        sys.exit(
            f"not started: {missing.name} is missing: install what the client needs with `make setup`, or with "
            "`pip install --group client`"
        )
    sys.exit(main(sys.argv[1:]))
