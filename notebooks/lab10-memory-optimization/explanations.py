"""What the explanations of lab10-memory-optimization are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("tiling-in-words", """
state: what tiling cuts, and with or without an overlap; what decodes the tiles, and in which order
    who: tiling = VAE tiling, tiled decode / the decoder = VAE, decoder of the VAE, VAE's decoder / the UNet =
        denoiser / the encoder = VAE's encoder, encoder of the VAE
    cuts = splits, divides: the latents / the finished picture = picture, image, output / the weights /
        the prompt
    decodes: one tile after the other = one tile after another, tiles one after the other, tiles one by one,
        one tile at a time, each tile on its own, them one after the other, them one by one / all tiles
        together = tiles together, all tiles in one batch, all tiles at once / one picture after the other =
        one picture at a time / the whole latents
    denoises: the tiles
    moves: the weights
    blends = fades: the overlaps = seams, overlapping tiles
    more: with an overlap = into overlapping tiles / without an overlap = into tiles without an overlap /
        before the decode / after the decode
axis: which axes are cut, how long they are in the first tile; what becomes of the batch; how many tiles
    who: height and width = spatial axes, sides, axes 2 and 3, last two axes, both spatial axes / only the
        height / the batch axis = batch, axis 0, first axis / the channel axis = channels, axis 1 / the number
        of tiles = tiles, decoder calls, calls, calls of the decoder, number of calls,
        number of decoder calls
    is cut from # to # = goes from # to #, is split from # to #, shrinks from # to #:
    is # = stays at #, stays #, has length #, is # long, remains #:
    stays whole = is not cut, is not split, stays the same, does not change:
    more: in the first tile / in every tile = in each tile, in all tiles
trade-off: what tiling improves; what it costs, and why
    who: tiling
    lowers = reduces, decreases: the peak memory = memory, memory of the decode, peak / the time of the
        decode = time, latency / the work of the decode = work, compute, computation / the fidelity of the
        picture = fidelity, quality, exactness, quality of the picture / the memory of the weights / the
        transfers = transfers of weights
    raises = increases: the peak memory / the time of the decode / the work of the decode / the
        fidelity of the picture / the memory of the weights / the transfers
    saves: the peak memory / the time of the decode / the work of the decode
    costs: the peak memory / the time of the decode / the work of the decode / the fidelity of the picture
    leaves alone = keeps: the peak memory / the time of the decode / the work of the decode /
        the fidelity of the picture / the memory of the weights / the transfers
    changes: the peak memory / the time of the decode / the work of the decode / the fidelity of the picture /
        the memory of the weights / the transfers
    more: because of the overlaps = because overlaps are decoded twice, as overlaps are decoded twice, for the
        overlaps, because the overlaps are computed twice / because one tile is decoded at a time / because
        each tile is normalized by itself = because every tile is normalized by itself, because each tile
        normalizes by itself / because of transfers / because the tiles are scaled down = because each
        tile is scaled down, because every tile is scaled down
offload-cost: a quantity and its direction
    who: quality / memory / latency = time / throughput / transfers = transfer, traffic / error
    up = goes up, rises, grows:
    down = goes down, falls, shrinks:
""")

# %% check="offload-cost"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("tiling-in-words"), "offload-cost", """
wanted: what model offload makes worse
    latency / transfers | up
    throughput | down
"""), "what model offload makes worse")

# %% check="tiling-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("tiling-in-words"), "state", """
wanted: what tiling cuts, and with or without an overlap
    tiling / the decoder | cuts | the latents | +with an overlap / before the decode
    tiling / the decoder | not: cuts | the latents | +without an overlap
wanted: what decodes the tiles, and in which order
    the decoder | decodes | one tile after the other | with an overlap
    the decoder | not: decodes | all tiles together | with an overlap
true
    tiling | decodes | one tile after the other | with an overlap
    tiling / the decoder | blends | the overlaps | after the decode
false: The VAE's decoder takes the tiles, after all steps. The UNet and the encoder have no part in it.
    the UNet / the encoder | *
    * | denoises | the tiles
false: The tiles overlap, and the seams are faded into each other.
    * | * | * | without an overlap
false: The picture is not there yet: the latents are cut, before they are decoded.
    * | cuts | the finished picture
    * | cuts | the latents | after the decode
false: The weights are not cut, and they do not move; the latents are cut.
    * | cuts | the weights / the prompt
    * | moves | the weights
false: The tiles are decoded one after the other: that is what saves memory.
    * | decodes | all tiles together / the whole latents
false: That is slicing, which cuts the batch.
    * | decodes | one picture after the other
"""), "what tiling cuts, and what decodes it")

# %% check="tiling-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("tiling-in-words"), "axis", """
wanted: which axes are cut, and how long they are in the first tile
    height and width | is cut from 32 to 16 / is cut from (32, 32) to (16, 16) | | in the first tile
    height and width | is cut from 256 to 128 / is cut from (256, 256) to (128, 128) | | in the first tile
    height and width | is 16 / is (16, 16) | | +in the first tile
wanted: what becomes of the batch
    the batch axis | is 2 / stays whole | | in the first tile / in every tile
wanted: how many tiles there are
    the number of tiles | is 9
true
    height and width | is 32
    the channel axis | is 4 / stays whole | | in the first tile / in every tile
false: The last tiles are smaller: they start at 24, and there are 8 latents left.
    height and width | is cut from # to # / is # | | in every tile
false: The batch is not cut: that would be slicing.
    the batch axis | *
false: The channels stay together.
    the channel axis | *
false: Height and width are cut, both of them.
    height and width | stays whole
    only the height | *
false: A tile starts every 12 latents, at 0, 12 and 24, and the first is 16 long: three times three tiles.
    height and width / the number of tiles | *
"""), "which axes are cut, with numbers")

# %% check="tiling-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("tiling-in-words"), "trade-off", """
wanted: what tiling improves
    tiling | lowers / saves | the peak memory | because one tile is decoded at a time
wanted: what it costs, and why
    tiling | raises / costs | the time of the decode / the work of the decode | +because of the overlaps
    tiling | lowers / costs | the fidelity of the picture | +because each tile is normalized by itself
true
    tiling | raises / costs | the time of the decode |
        because of the overlaps / because one tile is decoded at a time
    tiling | leaves alone | the memory of the weights / the transfers
    tiling | changes | the peak memory / the time of the decode | because one tile is decoded at a time
    tiling | changes | the time of the decode / the work of the decode | because of the overlaps
    tiling | changes | the fidelity of the picture | because each tile is normalized by itself
false: Tiling moves nothing and leaves the weights alone.
    tiling | lowers / raises / changes | the memory of the weights / the transfers
    tiling | * | * | because of transfers
false: No tile is made smaller: each is decoded at its full size.
    tiling | * | * | because the tiles are scaled down
false: Tiles overlap, and each normalizes by itself: the picture is another one.
    tiling | raises / leaves alone | the fidelity of the picture
false: The overlaps are decoded twice, so there is more to compute.
    tiling | lowers / saves / leaves alone | the time of the decode / the work of the decode
false: Only one tile's feature maps are in memory at a time.
    tiling | raises / costs / leaves alone | the peak memory
"""), "what tiling gains and costs")
