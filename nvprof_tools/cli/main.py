"""The command group and the only place where errors become exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final

import click

from nvprof_tools.cli.process import prepare
from nvprof_tools.errors import EXIT_BAD_INPUT, EXIT_INTERNAL, EXIT_OK, EXIT_USAGE, InvariantError, ToolError
from nvprof_tools.files.atomic import FULL
from nvprof_tools.files.safe_text import terminal

EXIT_INTERRUPTED: Final = 130

COMMANDS: Final = (
    ("demo", "nvprof_tools.cli.demo:demo_command", "Run the main job on the bundled golden trace."),
    ("attribute", "nvprof_tools.cli.attribute:attribute_command", "Tell where every nanosecond of a trace went."),
    ("report", "nvprof_tools.cli.report:report_command", "Write the same as HTML, Perfetto, Markdown, PNG …"),
    ("import", "nvprof_tools.cli.import_:import_command", "Write the normalised Arrow tables of a trace."),
    ("log", "nvprof_tools.cli.log:log_command", "Tell what a TIMELINE log alone says."),
    ("compare", "nvprof_tools.cli.compare:compare_command", "Two runs side by side, and whether it was noise."),
    ("golden", "nvprof_tools.cli.golden:golden_command", "Record, check and diff small golden traces."),
    ("profile", "nvprof_tools.cli.profile:profile_command", "Run a program under nsys and report its time."),
    ("doctor", "nvprof_tools.cli.doctor:doctor_command", "Tell what this machine can do, and what to do about it."),
    ("batch", "nvprof_tools.cli.batch:batch_command", "Attribute many traces on a cluster into one dataset."),
    ("tables", "nvprof_tools.cli.tables:tables_command", "Show the schemas of the normalised tables."),
    ("pipelines", "nvprof_tools.cli.pipelines:pipelines_command", "Show the pipeline files."),
)
"""Name, where the command lives, one line of help: a command's module is imported only when it runs."""


@dataclass
class State:
    """What options of the group leave for the rest."""

    debug: bool = False


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the table."""
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; null for a name that is not in the table."""
        for name, place, _ in COMMANDS:
            if name == cmd_name:
                module, _, attribute = place.partition(":")
                command = getattr(import_module(module), attribute)
                if not isinstance(command, click.Command):
                    raise InvariantError("internal", f"{place} is not a command", "report this as a bug")
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, _, text in COMMANDS])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="nvprof-tools", prog_name="nvprof-tools")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.pass_obj
def cli(state: State, debug: bool) -> None:
    """Tells where every nanosecond of a GPU pipeline went."""
    state.debug = state.debug or debug


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code; only this function turns errors into codes."""
    state = State()
    try:
        # Not cli.main(): that has exit codes of its own for a reader that goes away.
        with cli.make_context("nvprof-tools", list(sys.argv[1:] if args is None else args), obj=state) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    except ToolError as error:
        return _fail(state, error.slug, error.message, error.hint, error.exit_code)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "nvprof-tools"
        return _fail(state, "usage", error.format_message(), f"see {path} --help", EXIT_USAGE)
    except click.FileError as error:
        return _fail(
            state, "unreadable-file", error.format_message(), "check the path and its permissions", EXIT_BAD_INPUT
        )
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`) and has what it wanted. Keep the interpreter from flushing into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        if error.errno not in FULL:
            return _internal(state, error)
        # Outputs to files say so themselves: this is standard output, and at exit it would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(
            state, "output-disk-full", "no room left to write to standard output", "free some space", EXIT_BAD_INPUT
        )
    except MemoryError:
        return _fail(
            state, "out-of-memory", "not enough memory for this input", "use a shorter capture", EXIT_BAD_INPUT
        )
    except Exception as error:
        return _internal(state, error)
    return result if isinstance(result, int) else EXIT_OK


def main() -> None:
    """The ``nvprof-tools`` program."""
    prepare()
    sys.exit(run())


def _internal(state: State, error: Exception) -> int:
    message = f"{type(error).__name__}: {error}"
    return _fail(state, "internal", message, "report this as a bug, with the output of --debug", EXIT_INTERNAL)


def _fail(state: State, slug: str, message: str, hint: str, code: int) -> int:
    if state.debug:
        traceback.print_exc()
    click.echo(terminal(f"error[{slug}]: {message}"), err=True)
    if hint:
        click.echo(terminal(f"hint: {hint}"), err=True)
    return code
