"""`python -m covey` is the `covey` command."""

from covey.cli.main import main

if __name__ == "__main__":
    main()
