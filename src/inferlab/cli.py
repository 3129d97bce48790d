"""The `inferlab` command: what learners, instructors and maintainers do from a terminal.

Exit codes: 0 all well; 1 done, but something needs a person's eye (held files, a failing check, stale files,
a change that waits for --yes); 2 it could not be done, and the message says what to do.
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
from .terminal import printable


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = parser().parse_args(argv)
    # nbgrader's models make SQLAlchemy say this for every new submission; it is about their session, not
    # about data.
    warnings.filterwarnings("ignore", message="Object of type <Submitted")
    try:
        code, text, data = arguments.run(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("inferlab.grading"):
            return _fail(arguments, "this is the learners' package, which cannot grade: install InferLab "
                                    "from its repository")
        if (error.name or "").split(".")[0] not in ("nbgrader", "jupytext", "papermill", "jupyterlab"):
            return _broken(arguments, error)
        return _fail(arguments, f"this command needs the instructor's packages ({error.name} is not "
                                "installed): "
                                "pip install 'inferlab[course]'")
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _fail(arguments, f"{error.filename}: {error.strerror}" if named else str(error))
    except (Fault, ValueError, RuntimeError) as error:
        return _fail(arguments, str(error))
    except KeyboardInterrupt:
        return _fail(arguments, "stopped; what was done so far is kept")
    except Exception as error:  # noqa: BLE001 - Python's own exit code would say "needs a person's eye"
        if reason := _of_the_database(error):
            return _fail(arguments, f"the gradebook cannot be used: {reason}. What was done so far is kept: "
                                    "run the same command again when the database answers")
        return _broken(arguments, error)
    do.clear_progress()
    print(json.dumps(data, indent=1, ensure_ascii=False) if arguments.json else visible(text))
    return code


def visible(text: str) -> str:
    """A text for a terminal, with its lines, whatever learners wrote in it."""
    return printable(text, keep="\n\t")


def _of_the_database(error: Exception) -> str:
    """What a database says that is down, locked, full or no database; "" for any other error."""
    sql = sys.modules.get("sqlalchemy")  # most commands do without it, and then this is no error of its
    if sql is None or type(error) not in (sql.exc.OperationalError, sql.exc.DatabaseError):
        return ""
    return str(getattr(error, "orig", error)).strip().splitlines()[0].rstrip(".")


def _broken(arguments: argparse.Namespace, error: Exception) -> int:
    """What nobody has foreseen: for whoever mends it, with the traceback."""
    do.clear_progress()
    traceback.print_exception(error)
    return _fail(arguments, f"a fault of inferlab ({type(error).__name__}: {error}); tell us, with the "
                            "lines above")


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
            command.add_argument("--course", type=Path, default=Path(), metavar="DIR",
                                 help="the course's folder (default: here)")
        command.set_defaults(run=run)
        return command

    lab: dict[str, Any] = {"metavar": "LAB", "help": "a lab's name, for example lab02-denoising-step"}
    labs: dict[str, Any] = {"metavar": "LAB", "nargs": "*", "help": "labs' names; all of them by default"}

    check = add("check", do.check, "run a lab's notebook from the top and say what its visible checks give",
                course=False)
    check.add_argument("notebook", type=Path, help="the notebook (.ipynb); it is not changed")
    check.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                       help="the most that one cell may take")

    build = add("build", do.build, "build source/ and release/ from notebooks/ (no gradebook needed)")
    build.add_argument("labs", **labs)
    only = build.add_mutually_exclusive_group()
    only.add_argument("--source", action="store_true",
                      help="only what is missing or out of date in source/, which is not committed; an "
                           "edited notebook stays")
    only.add_argument("--check", action="store_true",
                      help="write nothing; exit 1 when something built is out of date")

    release = add("release", do.release, "build a lab and record its cells, points and tests in the "
                                         "gradebook")
    release.add_argument("labs", **labs)

    new = add("new", do.new, "make a new lab that builds and is proven as it is, with TODOs where you write "
                             "(CONTRIBUTING.md)")
    new.add_argument("lab", metavar="LAB", help="its name, for example lab20-guidance")

    adopt = add("adopt", do.adopt, "bring a lab that was edited as a notebook back to notebooks/")
    adopt.add_argument("lab", **lab)
    adopt.add_argument("notebook", type=Path, nargs="?",
                       help="the edited notebook (default: source/LAB/LAB.ipynb)")

    publish = add("publish", do.publish, "write the learners' public tree (labs, handbook, wheel) after a "
                                         "leak check")
    publish.add_argument("folder", type=Path, metavar="DIR",
                         help="a new or empty folder, or one published before")
    publish.add_argument("--lab", action="append", metavar="LAB",
                         help="only this lab (may be repeated), beside those that DIR has already")

    collect = add("collect", do.collect, "lay out submitted/ from handed-in files: folders, zips, notebooks "
                                         "under any name")
    collect.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="a folder, a zip or a notebook")
    collect.add_argument("--git", type=Path, metavar="CSV",
                         help="id,repository,branch: take --lab from each learner's repository, as it was at "
                              "the deadline")
    collect.add_argument("--until", metavar="TIME",
                         help="with --git: another time than the learner's deadline, or 'now'")
    collect.add_argument("--lab", help="take only this lab; notebooks of others are held")
    collect.add_argument("--roster", type=Path, metavar="CSV",
                         help="id,name,aliases,email (default: roster/roster.csv)")
    collect.add_argument("--assign", action="append", default=[], metavar="FILE=ID",
                         help="whose a held file is")
    collect.add_argument("--times", type=Path, metavar="CSV",
                         help="id,time: when each learner handed in (UTC where a time has no zone)")

    grade = add("grade", do.grade, "grade what was collected, in the sandbox")
    _grade_options(grade, lab)

    review = add("review", do.review, "list what a person must grade or look at, or give points by hand")
    review.add_argument("lab", **lab, nargs="?")
    review.add_argument("--set", nargs=3, metavar=("LEARNER", "CHECK", "POINTS"),
                        help="give these points by hand; they hold until the answer changes")
    review.add_argument("--groups", action="store_true",
                        help="open explanations only, similar answers together")
    review.add_argument("--give", nargs=2, metavar=("GROUP", "POINTS"),
                        help="give every answer of a group these points; the decision is kept across "
                             "regrading")
    review.add_argument("--note", default="", help="why, kept with the decision")

    regrade = add("regrade", do.regrade, "grade a lab again with its mended tests; shows who changes by how "
                                         "much")
    regrade.add_argument("lab", **lab)
    regrade.add_argument("--learner", action="append", help="only this learner (may be repeated)")
    regrade.add_argument("--yes", action="store_true", help="write the gradebook; without it nothing is "
                                                            "changed")

    claims = add("claims", do.claims, "show what a lab's explanations are held against, or add a claim and "
                                      "see whose points that changes")
    claims.add_argument("lab", **lab)
    claims.add_argument("field", nargs="?", help="a field of its explanation, such as state")
    claims.add_argument("--add", metavar="PATTERN", help="who | verb | what | added, or a statement as the "
                                                         "review shows it; true of the run where nothing "
                                                         "else is said")
    what = claims.add_mutually_exclusive_group()
    what.add_argument("--wanted", metavar="QUESTION", help="it answers this question")
    what.add_argument("--false", metavar="MESSAGE", help="it is wrong, and learners read this")
    claims.add_argument("--yes", action="store_true", help="write the new points; else they are only shown")
    claims.add_argument("--learner", action="append", help="grade only this learner again")

    late = add("late", do.late, "set penalties for lateness again, after you changed a date or gave points "
                                "in formgrader")
    late.add_argument("labs", **labs)

    feedback = add("feedback", do.feedback, "write each learner's feedback as HTML (no hidden test in it)")
    feedback.add_argument("lab", **lab)
    feedback.add_argument("--learner", action="append", help="only this learner (may be repeated)")
    feedback.add_argument("--answers", action="store_true",
                          help="show model answers, even if others may still hand in")
    feedback.add_argument("--for", dest="platform", choices=("moodle", "canvas"),
                          help="also write the pages as the zip that this platform takes back")
    feedback.add_argument("--to", type=Path, metavar="FILE",
                          help="where that zip goes to (default: feedback/LAB-PLATFORM.zip)")

    export = add("export", do.export, "write everybody's grades: grades.csv, or the table that a platform "
                                      "imports")
    export.add_argument("lab", **lab, nargs="?")
    export.add_argument("--for", dest="platform", default="csv",
                        choices=("csv", "moodle", "canvas", "gradescope", "blackboard"),
                        help="whose table it is (default: csv, a table for people and spreadsheets)")
    export.add_argument("--sheet", type=Path, metavar="FILE",
                        help="the platform's own table, to be filled in: all else in it stays as it is")
    export.add_argument("--column", default="", metavar="HEADING",
                        help="the heading of the grades on the platform (default: the lab's name, or the "
                             "platform's usual one)")
    export.add_argument("--out-of", type=float, metavar="POINTS",
                        help="the maximum on the platform (default: what its table says, or the lab's)")
    export.add_argument("--to", type=Path, metavar="FILE",
                        help="where to (default: grades.csv in the course, or grades/LAB-PLATFORM.csv)")

    gradescope = add("gradescope", do.gradescope, "make the zip of a lab's autograder for Gradescope")
    gradescope.add_argument("lab", **lab)
    gradescope.add_argument("zip", type=Path, metavar="OUT.zip", help="where to; it holds the hidden tests")
    gradescope.add_argument("--show", default="after_due_date", metavar="WHEN",
                            help="when learners see what the checks found: visible, after_due_date (the "
                                 "default), after_published or hidden")

    report = add("report", do.report, "a lab question by question: distribution and commonest mistakes; or "
                                      "the whole class")
    report.add_argument("lab", **lab, nargs="?")
    report.add_argument("--class", dest="whole_class", action="store_true",
                        help="write a page and tables: who handed in, points, mistakes, discrimination")
    report.add_argument("--to", type=Path, metavar="DIR",
                        help="where the page of the class goes to (default: class-report/ in the course)")
    report.add_argument("--similar", action="store_true",
                        help="also list groups of learners whose answers are much alike")

    cards = add("cards", do.cards, "write flashcards as a page that prints one card a page", course=False)
    cards.add_argument("sources", nargs="+", metavar="SET",
                       help="a bundled set (inference) or a TOML file; later ones add to the first")
    cards.add_argument("--to", type=Path, metavar="FILE", help="where to (default: SET.cards.html here)")

    demo = add("demo", do.demo, "the whole path on a bundled model: trace, release, three sample "
                                "submissions, grades")
    demo.add_argument("--lab", default=None, help="the lab to take through it (default: "
                                                  "lab02-denoising-step)")
    demo.add_argument("--folder", type=Path, help="where to work (default: demo/ in the course)")
    return top


def _grade_options(grade: argparse.ArgumentParser, lab: dict[str, Any]) -> None:
    grade.add_argument("lab", **lab)
    grade.add_argument("--learner", action="append", help="only this learner (may be repeated)")
    grade.add_argument("--workers", type=int, default=None, metavar="N",
                       help="how many at once (default: one a core)")
    grade.add_argument("--scheduler", metavar="ADDRESS", help="an existing Dask cluster's scheduler")
    grade.add_argument("--question", action="append", metavar="CHECK",
                       help="record only this check (may be repeated)")
    grade.add_argument("--db", metavar="URL", help="the gradebook's address (default: gradebook.db in the "
                                                   "course)")
    grade.add_argument("--again", action="store_true", help="run unchanged submissions again, too")
    grade.add_argument("--no-sandbox", action="store_true",
                       help="where the sandbox cannot run: learners' code then runs as you, and the report "
                            "says so")


if __name__ == "__main__":
    sys.exit(main())
