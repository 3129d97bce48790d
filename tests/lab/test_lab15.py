"""Lab 15: every faulty log is found by the lab's own solution, the pool is read as the library lays it
out."""

from functools import partial

import pytest
import torch
from transformers import DynamicCache

from inferlab.lab.kits.paging import allocator_logs as blockfaults
from inferlab.lab.kits.paging.blocks import allocator_of, memory_map, paged_run, pool_of
from inferlab.models import load_language_model
from tests.lab.labtexts import cell_of, points_of, prose_of

LAB = "lab15-paged-attention"
cell = partial(cell_of, LAB)
PROMPTS = [list(range(5, 5 + n)) for n in (19, 9, 25)]


@pytest.fixture(scope="module")
def model():
    return load_language_model("bundled", "cpu")[0]


@pytest.mark.parametrize("variant", range(16))
def test_the_labs_own_solution_finds_every_fault(variant):
    operations, log, at, kind = blockfaults.suspect(variant)
    namespace = {"operations": operations, "log": log, "BLOCKS": blockfaults.BLOCKS,
                 "PAGE_SIZE": blockfaults.PAGE}
    exec(cell(exercise="diagnose"), namespace)
    assert namespace["diagnose"]() == {"event": at, "kind": kind}
    assert kind == blockfaults.KINDS[variant % 4] and 6 < at < len(log) == len(operations)


@pytest.mark.parametrize("variant", range(16))
def test_a_log_goes_wrong_once_and_is_in_order_around_it(variant):
    operations, log, at, fault = blockfaults.suspect(variant)
    tables, lengths, odd = {}, {}, []
    for k, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log, strict=True)):
        held = [block for table in tables.values() for block in table]
        if kind == "free":
            lengths.pop(request)
            odd += [k] if sorted(tables.pop(request)) != seen else []
            continue
        table = tables.get(request, [])
        need = max(0, -(-(lengths.get(request, 0) + tokens[0]) // blockfaults.PAGE) - len(table))
        odd += [k] if what == "full" or len(seen) != need or set(seen) & set(held) else []
        if what == "took":
            tables[request], lengths[request] = table + seen, lengths.get(request, 0) + tokens[0]
    assert odd[0] == at
    # a block with two owners comes back, and is given out, while one still has it
    assert fault == "double" or odd == [at]


def test_there_is_no_seventeenth_log():
    with pytest.raises(ValueError, match="0 to 15"):
        blockfaults.suspect(16)


@torch.no_grad()
def test_a_pool_read_through_a_table_is_the_contiguous_cache_in_every_layer(model):
    run = paged_run(model, PROMPTS, (4, 3, 9), slots=2)  # request 2 ends last: nobody writes over its blocks
    assert [len(answer) for answer in run.answers] == [4, 3, 9]
    assert sum(call.tokens for call in run.calls) == sum(map(len, PROMPTS)) + 16 - 3
    last = max(k for k, call in enumerate(run.calls) if 2 in call.tables)
    table, tokens = list(run.calls[last].tables[2]), PROMPTS[2] + run.answers[2][:-1]
    plain = DynamicCache(config=model.config)
    model(torch.tensor([tokens]), None, None, plain)
    for layer in range(model.config.num_hidden_layers):
        for pool, contiguous in zip(pool_of(run.cache, layer),
                                    (plain.layers[layer].keys, plain.layers[layer].values), strict=True):
            held = pool[table].flatten(0, 1)[: len(tokens)]
            assert torch.allclose(held, contiguous[0].transpose(0, 1), atol=1e-4)


def test_requests_with_one_beginning_share_its_full_pages(model):
    prompts = [[*range(5, 45), 60 + k] for k in range(3)]
    alone, shared = (paged_run(model, prompts, (3, 5, 2), slots=2, share=share) for share in (False, True))
    assert alone.answers == shared.answers
    assert sum(c.tokens for c in alone.calls) - sum(c.tokens for c in shared.calls) == 32
    assert all(len(set(c.tables[2]) & set(c.tables[1])) == 2 for c in shared.calls if {1, 2} <= set(c.tables))
    assert not any(set(c.tables[0]) & set(c.tables[1]) for c in alone.calls if {0, 1} <= set(c.tables))


def test_a_cache_with_layers_of_several_kinds_is_refused():
    class Mixed:  # as much of a cache as is asked for
        def __init__(self):
            self.cache_allocators = {"full_attention": 1, "sliding_attention": 2}

    with pytest.raises(ValueError, match="2 groups"):
        allocator_of(Mixed())


def test_the_map_has_a_row_for_each_block_that_was_held():
    figure = memory_map([{0: (4, 2)}, {0: (4, 2), 1: (2, 7)}, {1: (2, 7)}], title="t")
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["2", "4", "7"]
    assert len(axis.patches) == 5  # block 2 has three owners one after the other: 0, 0 and 1, 1
    with pytest.raises(ValueError, match="no block"):
        memory_map([{}], title="t")


def test_the_title_says_the_points():
    points = points_of(LAB)
    assert (sum(points.values()), points["attention"]) == (19, 3)
    assert "**Points** 19, of which 3 are practice" in prose_of(LAB)


def test_the_numbers_of_the_explanation_are_those_of_the_labs_run(model):
    lengths, outputs = (45, 37, 70, 21), (12, 20, 6, 30)
    with torch.no_grad():
        run = paged_run(model, [[7 + k] * n for k, n in enumerate(lengths)], outputs, slots=3,
                        page=16)
    last = max(k for k, call in enumerate(run.calls) if 3 in call.tables)
    assert list(pool_of(run.cache, 0)[0].shape) == [66, 16, 2, 32]
    assert (lengths[3] + len(run.answers[3]) - 1, len(run.calls[last].tables[3])) == (50, 4)
