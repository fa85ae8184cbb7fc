"""The command line's front door: help answers at once, everything else is in `commands`."""

import os
import sys

from moie.errors import InputError, Stopped
from moie.terminal import say

USAGE = """\
usage: moie COMMAND ...

Trains continuous-control policies that a person can read.

  moie train TASK [--experts 10] [--steps 100000] [--seed 0] [--out runs/NAME] ...
                       learn a policy; 'moie train TASK --help' lists all settings
  moie resume RUN      go on with a run that was stopped or killed
  moie evaluate RUN    measure a policy: return, length, distance, how literally it may be read
  moie show RUN        print a policy as a program of IF blocks
  moie explain RUN     write a report: program, pictures, player, figures (one HTML file)
  moie prune RUN       remove the experts that are not needed, measure what that costs
  moie study NAME      make all runs of a study: tasks, learners, seeds; on a cluster too
  moie compare PATH    figures, tables and statistics of many runs (one HTML file)
  moie tasks           list the tasks with names and settings of their own

RUN is a run directory; all but resume also take a policy file.
'moie COMMAND --help' says more."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 if it succeeded, 2 for bad input, 130 if the user stopped it."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(USAGE)
        return 0 if arguments else 2
    try:
        if arguments[0] in ("-V", "--version"):
            from moie import __version__

            say(f"moie {__version__}")
            return 0
        from moie import commands

        commands.run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # a command's --help
        return int(stop.code or 0)
    except InputError as error:
        say(f"moie: {error}", sys.stderr)
        return 2
    except Stopped as stop:
        say(f"moie: {stop}", sys.stderr)
        return 130
    except KeyboardInterrupt:
        say("moie: interrupted", sys.stderr)
        return 130
    except PermissionError as error:
        say(f"moie: no permission for {error.filename}: {error.strerror}", sys.stderr)
        return 2
    except BrokenPipeError:  # `moie show RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
