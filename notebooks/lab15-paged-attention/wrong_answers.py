# Named wrong answers of lab 15: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="forecast" name="the last token is stored, too" keeps=1.5
def forecast(prompt, new, page):
    positions = prompt + new
    last = -(-positions // page)
    return {"first": -(-prompt // page), "positions": positions, "last": last,
            "grows": [k for k in range(1, new) if (prompt + k - 1) % page == 0], "empty": last * page - positions}

# %% wrong="forecast" name="all blocks are taken in advance" keeps=1.5
def forecast(prompt, new, page):
    positions = prompt + new - 1
    last = -(-positions // page)
    return {"first": last, "positions": positions, "last": last, "grows": [], "empty": last * page - positions}

# %% wrong="forecast" name="a block when the last one is full, one call too early" keeps=2
def forecast(prompt, new, page):
    positions = prompt + new - 1
    last = -(-positions // page)
    return {"first": -(-prompt // page), "positions": positions, "last": last,
            "grows": [k for k in range(1, new) if (prompt + k) % page == 0], "empty": last * page - positions}

# %% wrong="forecast" name="a page that is begun needs no block yet" keeps=2
def forecast(prompt, new, page):
    positions = prompt + new - 1
    return {"first": prompt // page, "positions": positions, "last": positions // page,
            "grows": [k for k in range(1, new) if (prompt + k - 1) % page == 0], "empty": positions % page}

# %% wrong="waste" name="the share that is in use" keeps=0
def waste(lengths, limit, page):
    used = sum(lengths)
    return {"worst": used / (limit * len(lengths)), "paged": used / sum(-(-n // page) * page for n in lengths)}

# %% wrong="waste" name="the mean of each request's share" keeps=1
def waste(lengths, limit, page):
    held = [-(-n // page) * page for n in lengths]
    return {"worst": sum(1 - n / limit for n in lengths) / len(lengths),
            "paged": sum(1 - n / h for n, h in zip(lengths, held)) / len(lengths)}

# %% wrong="waste" name="requests share their last pages" keeps=1
def waste(lengths, limit, page):
    used = sum(lengths)
    return {"worst": 1 - used / (limit * len(lengths)), "paged": 1 - used / (-(-used // page) * page)}

# %% wrong="waste" name="one block more than full pages, always" keeps=1
def waste(lengths, limit, page):
    used = sum(lengths)
    return {"worst": 1 - used / (limit * len(lengths)), "paged": 1 - used / sum((n // page + 1) * page for n in lengths)}

# %% wrong="rows" name="contiguous from the first block on" keeps=0.5
def rows(table, length, page, stride):
    return [table[0] * stride + position for position in range(length)]

# %% wrong="rows" name="a block is as long as its page" keeps=1
def rows(table, length, page, stride):
    return [table[position // page] * page + position % page for position in range(length)]

# %% wrong="rows" name="the whole last page" keeps=0
def rows(table, length, page, stride):
    return [block * stride + place for block in table for place in range(page)]

# %% wrong="rows" name="in the order of the memory" keeps=0.5
def rows(table, length, page, stride):
    return sorted(table[position // page] * stride + position % page for position in range(length))

# %% wrong="apply" name="a new block for every append" keeps=0.5
def apply(ops, blocks, page):
    free, tables, events = list(range(blocks)), {}, []
    for kind, request, *tokens in ops:
        if kind == "free":
            gave = sorted(tables.pop(request, []))
            free = sorted(free + gave)
            events.append(("gave", gave))
            continue
        need = -(-tokens[0] // page)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request] = tables.get(request, []) + took
        events.append(("took", took))
    return events

# %% wrong="apply" name="what was given back goes to the end of the line" keeps=1.5
def apply(ops, blocks, page):
    free, tables, lengths, events = list(range(blocks)), {}, {}, []
    for kind, request, *tokens in ops:
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            events.append(("gave", sorted(table)))
            free = free + sorted(table)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // page) - len(table)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request], lengths[request] = table + took, length + tokens[0]
        events.append(("took", took))
    return events

# %% wrong="apply" name="a refused append counts all the same" keeps=2
def apply(ops, blocks, page):
    free, tables, lengths, events = list(range(blocks)), {}, {}, []
    for kind, request, *tokens in ops:
        if kind == "free":
            table = tables.pop(request)
            lengths.pop(request)
            events.append(("gave", sorted(table)))
            free = sorted(free + table)
            continue
        lengths[request] = lengths.get(request, 0) + tokens[0]
        table = tables.setdefault(request, [])
        need = -(-lengths[request] // page) - len(table)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request] = table + took
        events.append(("took", took))
    return events

# %% wrong="apply" name="nothing is ever given back" keeps=0.5
def apply(ops, blocks, page):
    free, tables, lengths, events = list(range(blocks)), {}, {}, []
    for kind, request, *tokens in ops:
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            events.append(("gave", sorted(table)))
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // page) - len(table)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request], lengths[request] = table + took, length + tokens[0]
        events.append(("took", took))
    return events

# %% wrong="attention" name="the whole last block" keeps=0.5
def paged_attention(query, keys, values, table, length):
    group = query.shape[0] // keys.shape[2]
    own = [pool[list(table)].flatten(0, 1).repeat_interleave(group, dim=1) for pool in (keys, values)]
    scores = torch.einsum("hd,thd->ht", query, own[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), own[1])

# %% wrong="attention" name="repeat in place of repeat_interleave" keeps=0.5
def paged_attention(query, keys, values, table, length):
    group = query.shape[0] // keys.shape[2]
    own = [pool[list(table)].flatten(0, 1)[:length].repeat(1, group, 1) for pool in (keys, values)]
    scores = torch.einsum("hd,thd->ht", query, own[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), own[1])

# %% wrong="attention" name="the first rows of the pool" keeps=0.5
def paged_attention(query, keys, values, table, length):
    group = query.shape[0] // keys.shape[2]
    own = [pool.flatten(0, 1)[:length].repeat_interleave(group, dim=1) for pool in (keys, values)]
    scores = torch.einsum("hd,thd->ht", query, own[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), own[1])

# %% wrong="attention" name="without the scale" keeps=0.5
def paged_attention(query, keys, values, table, length):
    group = query.shape[0] // keys.shape[2]
    own = [pool[list(table)].flatten(0, 1)[:length].repeat_interleave(group, dim=1) for pool in (keys, values)]
    return torch.einsum("ht,thd->hd", torch.einsum("hd,thd->ht", query, own[0]).softmax(dim=1), own[1])

# %% wrong="share" name="a page is known by its own tokens alone" keeps=2.5
def share(ops, blocks, page):
    free, known, references, tables, events = list(range(blocks)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = []
            for block in tables.pop(request):
                references[block] -= 1
                gave += [block] if references[block] == 0 else []
            free = sorted(free + gave)
            known = {key: left for key, held in known.items() if (left := [block for block in held if block not in gave])}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range((len(tokens) - 1) // page):
            key = tuple(tokens[k * page: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key][0])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            references[block] = references.get(block, 0) + 1
            if (k + 1) * page <= len(tokens):
                known.setdefault(tuple(tokens[k * page: (k + 1) * page]), []).append(block)
        events.append({"shared": shared, "took": took})
    return events

# %% wrong="share" name="the whole prompt may be shared" keeps=2
def share(ops, blocks, page):
    free, known, references, tables, events = list(range(blocks)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = []
            for block in tables.pop(request):
                references[block] -= 1
                gave += [block] if references[block] == 0 else []
            free = sorted(free + gave)
            known = {key: left for key, held in known.items() if (left := [block for block in held if block not in gave])}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range(len(tokens) // page):
            key = tuple(tokens[: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key][0])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            references[block] = references.get(block, 0) + 1
            if (k + 1) * page <= len(tokens):
                known.setdefault(tuple(tokens[: (k + 1) * page]), []).append(block)
        events.append({"shared": shared, "took": took})
    return events

# %% wrong="share" name="the first to leave gives its blocks back" keeps=1.5
def share(ops, blocks, page):
    free, known, tables, events = list(range(blocks)), {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = tables.pop(request)
            free = sorted({*free, *gave})
            known = {key: left for key, held in known.items() if (left := [block for block in held if block not in gave])}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range((len(tokens) - 1) // page):
            key = tuple(tokens[: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key][0])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            if (k + 1) * page <= len(tokens):
                known.setdefault(tuple(tokens[: (k + 1) * page]), []).append(block)
        events.append({"shared": shared, "took": took})
    return events

# %% wrong="share" name="a page that is not full is shared" keeps=2
def share(ops, blocks, page):
    free, known, references, tables, events = list(range(blocks)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = []
            for block in tables.pop(request):
                references[block] -= 1
                gave += [block] if references[block] == 0 else []
            free = sorted(free + gave)
            known = {key: left for key, held in known.items() if (left := [block for block in held if block not in gave])}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range(-(-len(tokens) // page)):
            key = tuple(tokens[: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key][0])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            references[block] = references.get(block, 0) + 1
            known.setdefault(tuple(tokens[: (k + 1) * page]), []).append(block)
        events.append({"shared": shared, "took": took})
    return events

# %% wrong="share" name="a page is known by one block only" keeps=2.5
def share(ops, blocks, page):
    free, known, references, tables, events = list(range(blocks)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = []
            for block in tables.pop(request):
                references[block] -= 1
                gave += [block] if references[block] == 0 else []
            free = sorted(free + gave)
            known = {key: block for key, block in known.items() if block not in gave}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range((len(tokens) - 1) // page):
            key = tuple(tokens[: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            references[block] = references.get(block, 0) + 1
            if (k + 1) * page <= len(tokens):
                known.setdefault(tuple(tokens[: (k + 1) * page]), block)
        events.append({"shared": shared, "took": took})
    return events

# %% wrong="fit" name="a page makes a position smaller" keeps=1.5
def fit(lengths, limit, page, position_bytes, budget):
    blocks, inside = budget // (page * position_bytes), 0
    for length in lengths:
        blocks -= -(-length // page)
        if blocks < 0:
            break
        inside += 1
    return {"worst": min(len(lengths), budget // (limit * position_bytes)), "paged": inside, "position": position_bytes // page}

# %% wrong="fit" name="paged requests reserve their limit as well" keeps=0.5
def fit(lengths, limit, page, position_bytes, budget):
    reserved = min(len(lengths), budget // (limit * position_bytes))
    return {"worst": reserved, "paged": reserved, "position": position_bytes}

# %% wrong="fit" name="no rounding to whole pages" keeps=1
def fit(lengths, limit, page, position_bytes, budget):
    left, inside = budget // position_bytes, 0
    for length in lengths:
        left -= length
        if left < 0:
            break
        inside += 1
    return {"worst": min(len(lengths), budget // (limit * position_bytes)), "paged": inside, "position": position_bytes}

# %% wrong="fit" name="the bytes of a block for those of a position" keeps=1.5
def fit(lengths, limit, page, position_bytes, budget):
    blocks, inside = budget // (page * position_bytes), 0
    for length in lengths:
        blocks -= -(-length // page)
        if blocks < 0:
            break
        inside += 1
    return {"worst": min(len(lengths), budget // (limit * position_bytes)), "paged": inside, "position": page * position_bytes}

# %% wrong="diagnose" name="the last event, where the trouble shows" keeps=1
def diagnose():
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            if set(seen) != set(table):
                return {"event": len(log) - 1, "kind": "leak"}
            free |= set(seen)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // PAGE_SIZE) - len(table)
        if what == "full":
            return {"event": len(log) - 1, "kind": "refused"}
        if len(seen) > need:
            return {"event": len(log) - 1, "kind": "early"}
        if not set(seen) <= free:
            return {"event": len(log) - 1, "kind": "double"}
        free -= set(seen)
        tables[request], lengths[request] = table + seen, length + tokens[0]

# %% wrong="diagnose" name="the place is right, the kinds are mixed up" keeps=1
def diagnose():
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            if set(seen) != set(table):
                return {"event": at, "kind": "refused"}
            free |= set(seen)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // PAGE_SIZE) - len(table)
        if what == "full":
            return {"event": at, "kind": "leak"}
        if len(seen) > need:
            return {"event": at, "kind": "double"}
        if not set(seen) <= free:
            return {"event": at, "kind": "early"}
        free -= set(seen)
        tables[request], lengths[request] = table + seen, length + tokens[0]

# %% wrong="diagnose" name="the first event, and another kind" keeps=0
def diagnose():
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            if set(seen) != set(table):
                return {"event": 0, "kind": "refused"}
            free |= set(seen)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // PAGE_SIZE) - len(table)
        if what == "full":
            return {"event": 0, "kind": "leak"}
        if len(seen) > need:
            return {"event": 0, "kind": "double"}
        if not set(seen) <= free:
            return {"event": 0, "kind": "early"}
        free -= set(seen)
        tables[request], lengths[request] = table + seen, length + tokens[0]

# %% wrong="diagnose" name="one event too late, and the right kind" keeps=1
def diagnose():
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            if set(seen) != set(table):
                return {"event": at + 1, "kind": "leak"}
            free |= set(seen)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // PAGE_SIZE) - len(table)
        if what == "full":
            return {"event": at + 1, "kind": "refused"}
        if len(seen) > need:
            return {"event": at + 1, "kind": "early"}
        if not set(seen) <= free:
            return {"event": at + 1, "kind": "double"}
        free -= set(seen)
        tables[request], lengths[request] = table + seen, length + tokens[0]

# %% wrong="pages-in-words" name="pages compress the cache" keeps={"pages-words-per-token": 0, "pages-words-blocks": 1, "pages-words-gain-cost": 1, "pages-words-state": 0, "pages-words-axis": 1, "pages-words-trade-off": 1}
# %%explain pages-in-words
# state: The block table shrinks the tokens, so that they need fewer bytes.
# axis: The token axis is cut into pages of 16, so the last request holds 50 positions in 4 blocks.
# trade-off: Smaller pages waste less memory, but the block tables get longer.
# per-token: 256
# blocks: 17
# gain: waste down
# cost: table length up

# %% wrong="pages-in-words" name="the last token is stored, and requests share pages" keeps={"pages-words-per-token": 1, "pages-words-blocks": 0, "pages-words-gain-cost": 1, "pages-words-state": 1, "pages-words-axis": 0, "pages-words-trade-off": 1}
# %%explain pages-in-words
# state: The block table maps each page of positions to a physical block.
# axis: The token axis is cut into pages, and the last request holds 51 positions in 5 blocks.
# trade-off: Smaller pages waste less memory, but the block tables get longer.
# per-token: 4096
# blocks: 15
# gain: waste down
# cost: table length up

# %% wrong="pages-in-words" name="smaller pages waste more" keeps={"pages-words-per-token": 1, "pages-words-blocks": 1, "pages-words-gain-cost": 0, "pages-words-state": 0, "pages-words-axis": 1, "pages-words-trade-off": 0}
# %%explain pages-in-words
# state: The scheduler translates positions into blocks.
# axis: The token axis is cut into pages of 16, so the last request holds 50 positions in 4 blocks.
# trade-off: Smaller pages waste more memory, but the tables get shorter.
# per-token: 4096
# blocks: 17
# gain: table length down
# cost: waste up

# %% wrong="pages-in-words" name="an essay without a number or a direction" keeps={"pages-words-per-token": 0, "pages-words-blocks": 0, "pages-words-gain-cost": 0, "pages-words-state": 0, "pages-words-axis": 0, "pages-words-trade-off": 0}
# %%explain pages-in-words
# state: Paged attention is a clever technique from operating systems.
# axis: The axis is important for paging.
# trade-off: There are advantages and disadvantages that depend on the situation.
# per-token: it depends
# blocks: some
# gain: efficiency
# cost: complexity
