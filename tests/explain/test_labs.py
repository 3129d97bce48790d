"""The words and the claims of every lab agree, without running a model."""

import ast
import functools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.lab.explain.cell import parse
from inferlab.lab.explain.claims import ClaimGroup, Claims, Pattern
from inferlab.lab.explain.table import Phrase, Said, Statement
from inferlab.lab.explain.tokens import Token
from inferlab.lab.explain.words import Words

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FIELD = re.compile(r'words = Words\("(?P<name>[^"]+)", """(?P<text>.*?)"""\)', re.DOTALL)


class AnyFact(dict):
    """Facts of a run that was never made: every name has a value."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> int:
        return 123_457


@functools.cache
def composed(lab: str) -> tuple[Words | None, dict[str, str], str]:
    """(the lab's words, {field: its claims}, the solution's cell) of a lab whose explanation is composed."""
    blocks = read_lesson(NOTEBOOKS / lab / f"{lab}.py")
    listed = next((match for block in blocks if (match := FIELD.search(block.cell.source))), None)
    if listed is None:
        return None, {}, ""
    claims = {}
    for block in blocks:
        if "check" not in block.cell.metadata:
            continue
        for call in ast.walk(ast.parse(block.cell.source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "words.grade":
                claims[ast.literal_eval(call.args[1])] = ast.literal_eval(call.args[2])
    solution = next(b.cell.source for b in blocks if b.cell.metadata.get("explain") == listed["name"])
    return Words(listed["name"], listed["text"]), claims, solution


LABS = [lab.name for lab in sorted(NOTEBOOKS.iterdir()) if lab.is_dir() and composed(lab.name)[0]]


@pytest.fixture(params=LABS)
def lab(request):
    return composed(request.param)


def opened(lab) -> list[Claims]:
    words, claims, _ = lab
    return [words.claims(label, text, AnyFact()) for label, text in claims.items()]


def opened_phrase(phrase: Phrase) -> Said:
    """`phrase` as it is said with amounts that nobody has chosen yet."""
    return Said(phrase, (Token("#", None, "#"),) * phrase.count("#"))


def every_sentence(claims: Claims) -> list[Statement]:
    """Every sentence of a field without an addition; amounts are left open."""
    return [
        Statement(opened_phrase(who), opened_phrase(verb), opened_phrase(what) if what else None)
        for who in claims.rows.who
        for verb, offered in claims.rows.verbs.items()
        for what in (offered or [None])
    ]


def has_amounts(pattern: Pattern) -> bool:
    """Whether some alternative takes one amount only."""
    picks = [pick for column in (pattern.who, pattern.verb, pattern.what) for pick in column]
    return any(value is not None for pick in picks for value in pick.amounts)


def named(pattern: Pattern, said: Statement) -> bool:
    """Whether a statement's who, verb and what are as they are in a pattern, but for their amounts."""
    columns = (pattern.who, said.who), (pattern.verb, said.verb), (pattern.what, said.what)
    return said.denied == pattern.denied and all(
        any(pick.phrase is None or (part is not None and part.phrase == pick.phrase) for pick in picks) for picks, part in columns
    )


def denied_by(claims: Claims, group: ClaimGroup) -> bool:
    """Whether there is a sentence, with at most one addition, that a group of kind "false" denies."""
    true = [p for g in claims.groups if g.kind != "false" for p in g.patterns if not has_amounts(p)]
    return any(
        named(pattern, said)
        and not any(named(p, said) and not p.not_allowed(said) for p in true)
        for pattern in group.patterns
        for one in [pick.phrase for pick in pattern.more] or [None]
        for bare in every_sentence(claims)
        for said in [replace(bare, more=(opened_phrase(one),) if one else (), denied=pattern.denied)]
    )


def test_every_field_of_sentences_has_claims(lab):
    words, claims, _ = lab
    assert set(claims) == {label for label, one in words.fields.items() if not one.entry}


def test_each_pattern_says_a_sentence_that_can_be_composed(lab):
    for claims in opened(lab):
        every = every_sentence(claims)
        for group in claims.groups:
            for pattern in group.patterns:
                assert any(named(pattern, replace(said, denied=pattern.denied)) for said in every), (
                    claims.label,
                    group.text,
                    pattern,
                )


def test_each_message_denies_something(lab):
    """No pattern that is listed as false is wholly covered by what is true."""
    for claims in opened(lab):
        for group in claims.groups:
            if group.kind == "false":
                assert denied_by(claims, group), (claims.label, group.text)


def test_a_unit_is_the_same_in_the_table_and_in_the_check(lab):
    words, _, _ = lab
    text = next(file.read_text() for file in NOTEBOOKS.glob("*/explanations.py") if f'Words("{words.name}"' in file.read_text())
    units = {
        ast.literal_eval(call.args[1]): ast.literal_eval(named.value)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "typed"
        for named in call.keywords
        if named.arg == "unit"
    }
    assert units == {label: one.unit for label, one in words.fields.items() if one.unit}


def test_the_solution_is_read_whole(lab):
    words, _, solution = lab
    assert set(parse(solution).fields()) == set(words.fields), "the words must list every field, typed lines too"
    for label, found in words.read(parse(solution)).items():
        assert all(isinstance(one, Statement) for one in found), (label, found)


def test_a_denial_that_is_listed_denies_what_is_not_so(lab):
    for claims in opened(lab):
        for pattern in (p for group in claims.groups if group.kind != "false" for p in group.patterns if p.denied):
            plainly = replace(pattern, denied=False)
            for said in every_sentence(claims):
                for more in [pick.phrase for pick in pattern.more if pick.needed] or [None]:
                    whole = replace(said, more=(Said(more),) if more else ())
                    assert not plainly.fits(whole) or not claims.truth(whole)[0], (claims.label, str(whole))


def test_no_two_entries_of_a_row_are_said_alike(lab):
    words, _, _ = lab
    for one in words.fields.values():
        for phrases in (one.rows.who, list(one.rows.verbs), one.rows.more, *one.rows.verbs.values()):
            forms = [(form, phrase) for phrase in phrases for form in one.rows.forms(phrase)]
            for form, phrase in forms:
                other = {str(p) for f, p in forms if f == form}
                assert other == {str(phrase)}, (one.label, other)


def test_claims_are_short(lab):
    _, claims, _ = lab
    for label, text in claims.items():
        lines = [line for line in text.split("\n") if line.strip()]
        goes_on = [line for line in lines if line.startswith(" " * 8)]  # a claim that is broken over two lines
        assert len(lines) - len(goes_on) <= 25, label
