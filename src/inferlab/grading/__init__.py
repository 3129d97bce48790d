"""The instructor's side: building labs, collecting hand-ins, grading in a sandbox, review and reports.

How a file that a learner handed in becomes marks and a page of feedback, in 15 stops. A stop is one module to
read, and says what to read in it; modules named after it in passing only help:

1.  `inferlab/commands/marking.py` has the three commands of this way: `collect`, `grade` and `feedback`.

`inferlab collect moodle.zip` puts notebooks into `submitted/`:

2.  `collecting/collect.py` (`collect`) goes through the files. `_identify_one` asks stops 4 to 6 about each
    file, which is kept in `collected/` (`kept.py`). `_put_latest` puts each learner's latest into
    `submitted/`, with its time in `timestamp.txt`.
3.  `collecting/incoming.py` finds the files in the folder or zip, with the time that the zip gives each.
4.  `collecting/identify.py` tells which lab a file is of (`which_lab`), whose it is (`whose`) and when it was
    handed in (`own_time`).
5.  `submission/submission.py` has a submission's life: `read` makes a notebook of the bytes, `Submission` is
    the value that is handed on from here, `CourseLab` the lab that it is of, `make_job` says what is run.
6.  `submission/mend.py` finds the learner's cell for each of the lab's, and puts it in its place.

`inferlab grade LAB` runs what lies in `submitted/` and writes marks:

7.  `gradebook/batch.py` (`grade_lab`, then `Batch.rows`) takes one learner's file after another: stop 5 again
    for the job, stop 6 again where the file was not collected or has changed since, then 8 to 14. A result
    that is there already is used as it is (`Batch._begin`): go on at stop 13, or, where it is recorded as
    well, nothing is left to do.
8.  `running/host.py` (`execute`) pairs a fresh kernel with a process of the grader's. `Results` keeps what
    came of it.
9.  `running/grader.py` is the grader's process: `grade` runs the cells and tests in order, `run_test` one
    test cell.
10. `running/remote.py` asks the kernel for what a cell showed, and for the learner's functions and values.
11. `sandbox/kernel.py` is the kernel's end, inside the sandbox: `channel.py` carries questions and answers,
    `shell.py` runs a cell, `capture.py` keeps what it shows. The rest of the folder starts it and shuts it
    in.
12. `inferlab/lab/checks/check.py` (`Check.score`), the test cell's last line, makes the number.
13. `gradebook/record.py` (`record_submission`) writes the marks into the gradebook (`write_marks`), what is
    lost for being late (`set_penalty`), and the graded notebook into `autograded/`. When all are graded,
    stop 1 has `lateness.py` set every penalty anew, with extensions and free days.
14. `gradebook/database.py` has the gradebook's tables.

`inferlab feedback LAB` writes a page for each learner:

15. `reporting/feedback_page.py` (`write_feedback`) has nbgrader's own `generate_feedback` make the page with
    `FeedbackPage`, from `autograded/` and the gradebook; `feedback_page.html` beside it is the template, and
    `feedback_html.py` makes what a learner wrote into HTML.

The time that a file was handed in goes its own way: `own_time` (stop 4) reads it, `first_time` (`kept.py`)
keeps the earliest of equal files, `write_stamp` writes it beside the notebook, `handed_in_at` reads it again,
and `share_lost` (stop 13) makes the penalty of it.

What these stops look up is named for what it gives: `course.py` (deadlines, and where everything lies),
`roster.py`, `tables.py` (CSV files of an instructor's), `platforms.py` (how each names files), `notebook.py`
and `stubs.py` (cells), `submission/files.py` and `submission/submitted_folders.py` (what lies in a folder).

Odd ways have modules of their own: Git (`collecting/repositories.py`), Gradescope's list (`export_lists.py`),
`--assign` and `--times` (`overrides.py`), a notebook that lies in `submitted/` already (`again.py`), pieces
and copies of answers (`submission/pieces.py`), points that a person gave (`gradebook/decisions.py`,
`review.py`), Dask, limits and the lock (`batch_setup.py`).

`inferlab export LAB --for PLATFORM` and `inferlab feedback LAB --for PLATFORM` write what a platform takes
back: `reporting/grade_tables.py` and `reporting/feedback_zip.py`. `inferlab report --class` is
`reporting/class_report.py`. `gradescope/` has another way in: its `run.py` goes through stops 3 to 6 and 8 to
12, for one submission, inside Gradescope's container.

nbgrader's own commands read the course's `nbgrader_config.py` (`grading/nbgrader_config.py` reads it for
ours):

- `c.GenerateAssignment.preprocessors` leads to `authoring/release_steps.py`: what is cut out of a lab.
- `c.Autograde.exporter_class` and `c.Autograde.autograde_preprocessors` lead to
  `gradebook/nbgrader_autograde.py`. That is another way in: stock `nbgrader autograde` begins there, goes
  through stops 5, 6 and 8 to 12, and ends with `write_marks`. `inferlab grade` does not use that module.
- `c.GenerateFeedback.exporter_class` leads to stop 15.
- `c.HTMLExporter.filters` leads to `reporting/clean_html.py`: what learners wrote, made harmless.
"""
