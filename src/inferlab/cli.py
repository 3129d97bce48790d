"""The `inferlab` command: what learners, instructors and maintainers do from a terminal.

Exit codes: 0 all well; 1 done, but something needs a person's eye (held files, a failing check, stale files, a change
that waits for --yes); 2 it could not be done, and the message says what to do.
"""

import argparse
import json
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from . import __version__
from . import commands as do
from .commands import FAILED, Fault


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = parser().parse_args(argv)
    # nbgrader's models make SQLAlchemy say this for every new submission; it is about their session, not about data.
    warnings.filterwarnings("ignore", message="Object of type <Submitted")
    try:
        code, text, data = arguments.run(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("nbgrader", "jupytext", "papermill", "jupyterlab"):
            return _broken(arguments, error)
        return _fail(arguments, f"this command needs the instructor's packages ({error.name} is not installed): "
                                "pip install 'inferlab[course]'")
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _fail(arguments, f"{error.filename}: {error.strerror}" if named else str(error))
    except (Fault, ValueError, RuntimeError) as error:
        return _fail(arguments, str(error))
    except KeyboardInterrupt:
        return _fail(arguments, "stopped; what was done so far is kept")
    except Exception as error:  # noqa: BLE001 - Python's own exit code would say "needs a person's eye"
        return _broken(arguments, error)
    do.clear_progress()
    print(json.dumps(data, indent=1, ensure_ascii=False) if arguments.json else visible(text))
    return code


def visible(text: str) -> str:
    """A text for a terminal, with its lines, whatever learners wrote in it."""
    from .grading.incoming import printable

    return printable(text, keep="\n\t")


def _broken(arguments: argparse.Namespace, error: Exception) -> int:
    """What nobody has foreseen: for whoever mends it, with the traceback."""
    do.clear_progress()
    traceback.print_exception(error)
    return _fail(arguments, f"a fault of inferlab ({type(error).__name__}: {error}); tell us, with the lines above")


def _fail(arguments: argparse.Namespace, message: str) -> int:
    do.clear_progress()
    if arguments.json:
        print(json.dumps({"error": message}, ensure_ascii=False))
    else:
        print(f"inferlab {arguments.command}: {visible(message)}", file=sys.stderr)
    return FAILED


def parser() -> argparse.ArgumentParser:
    """The command line: one subcommand a task."""
    top = argparse.ArgumentParser(prog="inferlab", description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"inferlab {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: Any, text: str, course: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--json", action="store_true", help="print one JSON value instead of text")
        if course:
            command.add_argument("--course", type=Path, default=Path(), metavar="DIR", help="the course's folder (default: here)")
        command.set_defaults(run=run)
        return command

    lab = {"metavar": "LAB", "help": "a lab's name, for example lab02-denoising-step"}
    labs = {"metavar": "LAB", "nargs": "*", "help": "labs' names; all of them by default"}

    check = add("check", do.check, "run a lab's notebook from the top and say what its visible checks give", course=False)
    check.add_argument("notebook", type=Path, help="the notebook (.ipynb); it is not changed")
    check.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="the most that one cell may take")

    build = add("build", do.build, "build source/ and release/ from notebooks/ (no gradebook needed)")
    build.add_argument("labs", **labs)
    build.add_argument("--check", action="store_true", help="write nothing; exit 1 when something built is out of date")

    release = add("release", do.release, "build a lab and record its cells, points and tests in the gradebook")
    release.add_argument("labs", **labs)

    adopt = add("adopt", do.adopt, "bring a lab that was edited as a notebook back to notebooks/")
    adopt.add_argument("lab", **lab)
    adopt.add_argument("notebook", type=Path, nargs="?", help="the edited notebook (default: source/LAB/LAB.ipynb)")

    publish = add("publish", do.publish, "write the learners' public tree (labs, handbook, wheel) after a leak check")
    publish.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder, or one published before")

    collect = add("collect", do.collect, "lay out submitted/ from handed-in files: folders, zips, notebooks under any name")
    collect.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="a folder, a zip or a notebook")
    collect.add_argument("--lab", help="take only this lab; notebooks of others are held")
    collect.add_argument("--roster", type=Path, metavar="CSV", help="id,name,aliases,email (default: roster/roster.csv)")
    collect.add_argument("--assign", action="append", default=[], metavar="FILE=ID", help="whose a held file is")
    collect.add_argument("--times", type=Path, metavar="CSV", help="id,time: when each learner handed in")

    grade = add("grade", do.grade, "grade what was collected, in the sandbox")
    _grade_options(grade, lab)

    review = add("review", do.review, "list what a person must grade or look at, or give points by hand")
    review.add_argument("lab", **lab, nargs="?")
    review.add_argument("--set", nargs=3, metavar=("LEARNER", "CHECK", "POINTS"), help="give these points by hand; they hold until the answer changes")
    review.add_argument("--groups", action="store_true", help="open explanations only, similar answers together")
    review.add_argument("--give", nargs=2, metavar=("GROUP", "POINTS"),
                        help="give every answer of a group these points; the decision is kept across regrading")
    review.add_argument("--note", default="", help="why, kept with the decision")

    regrade = add("regrade", do.regrade, "grade a lab again with its mended tests; shows who changes by how much")
    regrade.add_argument("lab", **lab)
    regrade.add_argument("--learner", action="append", help="only this learner (may be repeated)")
    regrade.add_argument("--yes", action="store_true", help="write the gradebook; without it nothing is changed")

    late = add("late", do.late, "apply deadlines, extensions and late days to the gradebook")
    late.add_argument("labs", **labs)

    feedback = add("feedback", do.feedback, "write each learner's feedback as HTML (no hidden test in it)")
    feedback.add_argument("lab", **lab)
    feedback.add_argument("--learner", action="append", help="only this learner (may be repeated)")

    export = add("export", do.export, "write grades.csv")
    export.add_argument("lab", **lab, nargs="?")
    export.add_argument("--to", type=Path, metavar="FILE", help="where to (default: grades.csv in the course)")

    report = add("report", do.report, "a lab question by question: distribution and commonest mistakes")
    report.add_argument("lab", **lab)
    report.add_argument("--no-sandbox", action="store_true", help="of what was graded without the sandbox")
    report.add_argument("--similar", action="store_true", help="also list pairs of answers that are much alike")

    cards = add("cards", do.cards, "write flashcards as a page that prints one card a page", course=False)
    cards.add_argument("sources", nargs="+", metavar="SET", help="a bundled set (inference) or a TOML file; later ones add to the first")
    cards.add_argument("--to", type=Path, metavar="FILE", help="where to (default: SET.cards.html here)")

    demo = add("demo", do.demo, "the whole path on a bundled model: trace, release, three sample submissions, grades")
    demo.add_argument("--lab", default=None, help="the lab to take through it (default: lab02-denoising-step)")
    demo.add_argument("--folder", type=Path, help="where to work (default: demo/ in the course)")
    return top


def _grade_options(grade: argparse.ArgumentParser, lab: dict) -> None:
    grade.add_argument("lab", **lab)
    grade.add_argument("--learner", action="append", help="only this learner (may be repeated)")
    grade.add_argument("--workers", type=int, default=None, metavar="N", help="how many at once (default: one a core)")
    grade.add_argument("--scheduler", metavar="ADDRESS", help="an existing Dask cluster's scheduler")
    grade.add_argument("--question", action="append", metavar="CHECK", help="record only this check (may be repeated)")
    grade.add_argument("--db", metavar="URL", help="the gradebook's address (default: gradebook.db in the course)")
    grade.add_argument("--again", action="store_true", help="run unchanged submissions again, too")
    grade.add_argument("--no-sandbox", action="store_true",
                       help="where the sandbox cannot run: learners' code then runs as you, and the report says so")


if __name__ == "__main__":
    sys.exit(main())
