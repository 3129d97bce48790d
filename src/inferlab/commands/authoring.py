"""What `inferlab` does for who writes labs: build, release, adopt, publish."""

import argparse

from .shared import LOOK, OK, Answer, Fault, opened_course, show_progress, wanted_labs


def build(arguments: argparse.Namespace) -> Answer:
    """`inferlab build`."""
    from inferlab.grading.authoring.build import build_lab, build_start_here, refresh_sources, stale_labs

    course = opened_course(arguments)
    if arguments.check:
        stale = stale_labs(course, wanted_labs(course, arguments.labs) if arguments.labs else None)
        text = "\n".join(["out of date:", *stale]) if stale else "up to date"
        return (LOOK if stale else OK), text, {"stale": stale}
    if arguments.source:
        show_progress("building source/")
        found, left = refresh_sources(course, wanted_labs(course, arguments.labs) if arguments.labs else None)
        changed = [str(path.relative_to(course.root)) for path in found]
        text = "\n".join([*(["changed:", *changed] if changed else ["nothing changed"]), *left])
        return (LOOK if left else OK), text, {"changed": changed, "left": left}
    changed = []
    for lab in wanted_labs(course, arguments.labs):
        show_progress(f"building {lab}")
        changed += [str(path.relative_to(course.root)) for path in build_lab(course, lab)]
    changed += [str(path.relative_to(course.root)) for path in build_start_here(course)]
    return OK, "\n".join(["changed:", *changed]) if changed else "nothing changed", {"changed": changed}


def release(arguments: argparse.Namespace) -> Answer:
    """`inferlab release`."""
    from inferlab.grading.authoring.build import build_lab, build_source, save_to_gradebook
    from inferlab.grading.gradebook.database import Gradebook, other_cells

    course, done = opened_course(arguments), []
    labs = wanted_labs(course, arguments.labs)
    with Gradebook(course.gradebook_url) as gradebook:  # before anything is written
        found = [other_cells(gradebook, lab, build_source(course, lab)) for lab in labs]
    if problems := list(filter(None, found)):
        raise Fault("\n".join([*problems, "nothing was released"]))
    for lab in labs:
        show_progress(f"releasing {lab}")
        build_lab(course, lab)
        save_to_gradebook(course, lab)
        done.append(lab)
    return OK, "\n".join(f"released: release/{lab}/{lab}.ipynb" for lab in done), {"released": done}


def new(arguments: argparse.Namespace) -> Answer:
    """`inferlab new`."""
    from inferlab.grading.authoring.new import new_lab

    files = new_lab(opened_course(arguments), arguments.lab)
    text = "\n".join([*files, f"prove it: make notebooks LAB={arguments.lab}; what to write where: "
                              "CONTRIBUTING.md"])
    return OK, text, {"lab": arguments.lab, "files": files}


def adopt(arguments: argparse.Namespace) -> Answer:
    """`inferlab adopt`."""
    from inferlab.grading.authoring.adopt import adopt

    course = opened_course(arguments)
    done = adopt(course, arguments.lab, arguments.notebook)
    counts = {"changed": done.changed, "new": done.added, "gone": done.gone, "unchanged": done.kept}
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    text = f"notebooks/{arguments.lab}/: {told} (cells)"
    text += f"\nbefore you release it: {done.to_mend}" if done.to_mend else "; now run: make release"
    return OK, text, {"lab": arguments.lab, **counts, "to_mend": done.to_mend}


def publish(arguments: argparse.Namespace) -> Answer:
    """`inferlab publish`."""
    from inferlab.grading.authoring.publish import publish

    show_progress("building the labs and the wheel, and looking for leaks")
    course = opened_course(arguments)
    done = publish(course, arguments.folder, labs=[course.require(lab) for lab in arguments.lab]
                   if arguments.lab else None)
    text = f"{done.folder}: {len(done.files)} files, {len(done.labs)} labs, no answer in them"
    return OK, text, {"folder": str(done.folder), "files": done.files, "labs": done.labs}
