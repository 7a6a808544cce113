"""`python -m app`: run the server with settings from VIT_* variables."""

from app.early_exit import exit_at_signals


def main() -> None:
    with exit_at_signals():
        from app import launch  # takes half a second, in which a signal may come

        app, settings = launch.load()
    launch.serve(app, settings)


if __name__ == "__main__":
    main()
