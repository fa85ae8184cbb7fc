"""The command line's front door: help answers at once, everything else is in `commands`."""

# Not `signal`: that imports more, and a Ctrl-C in there would end with a traceback.
import _signal  # type: ignore[import-not-found]
import errno
import os
import sys

USAGE = """\
usage: moie COMMAND ...

Trains continuous-control policies that a person can read.

  moie train TASK [--experts 10] [--steps 100000] [--seed 0] [--out runs/NAME] ...
                       train a policy; 'moie train --help' lists all options
  moie swarm TASK      train many seeds at once, on an accelerator
  moie resume RUN      continue a run that was stopped or killed
  moie evaluate RUN    measure a policy: return, length, distance, how literally it may be read
  moie show RUN        print a policy as a program of IF blocks
  moie datasheet RUN   what is proved of its commands, for all states: one page
  moie explain RUN     write a report: program, pictures, player, figures (one HTML file)
  moie prune RUN       remove the experts that are not needed and measure what that costs
  moie edit RUN FILE   change a policy by hand and measure what that costs
  moie studio RUN      watch a policy act, and change it by hand while it does (in a browser)
  moie export RUN      write a policy as C, ONNX, Python or JavaScript, with test vectors
  moie study NAME      run a whole study: many tasks, algorithms and seeds, also on a cluster
  moie compare PATH    figures, tables and statistics of many runs (one HTML file)
  moie tasks           list the paper's tasks
  moie zoo             list the trained policies that come with moie

RUN is a run directory; every command except resume also accepts a policy file, or zoo:NAME
for a policy of the zoo: 'moie show zoo:hopper'.
'moie help COMMAND' or 'moie COMMAND --help' shows its options."""


def _leave(number: int, frame: object) -> None:
    """Ctrl-C where nothing has begun that would have to be ended well; `stoppable` takes over where
    it has. An exception instead could get lost in somebody's import."""
    os.write(2, b"moie: interrupted\n")
    os._exit(130)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 if it succeeded, 2 for bad input, 130 if the user stopped it. Without
    arguments those of the process are taken, and Ctrl-C is too, before anything is imported."""
    if arguments is None:
        arguments = sys.argv[1:]
        # Where it is ignored, as by nohup, it stays so.
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, _leave)
    return _run(arguments)


def _run(arguments: list[str]) -> int:
    from moie.errors import EnvironmentFault, MoieError, Stopped
    from moie.terminal import say

    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(USAGE)
        return 0 if arguments else 2
    try:
        if arguments[0] in ("-V", "--version"):
            from moie import __version__

            say(f"moie {__version__}")
            return 0
        from moie.cli import commands

        commands.run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # a command's --help
        return int(stop.code or 0)
    except MoieError as error:
        if isinstance(error, EnvironmentFault) and error.last_lines:
            say("\n".join(error.last_lines), sys.stderr)
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
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        say(f"moie: {error.strerror}: {error.filename}", sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
