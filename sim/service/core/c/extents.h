/* sim.memory.pool.PagePool, and sim.memory.extents.ExtentPool for prompts of which only the length is known. */

/* ExtentPool.remove */
static void remove_extent(Core *core, i64 e) {
    Extent *extent = &core->extents[e];
    if (extent->before != NONE) core->extents[extent->before].after = extent->after;
    else core->idle.first = extent->after;
    if (extent->after != NONE) core->extents[extent->after].before = extent->before;
    else core->idle.last = extent->before;
    if (extent->seq != NONE) core->seqs[extent->seq].extent = NONE;
    extent->after = core->unused_extent;
    core->unused_extent = e;
}

/* Extent(index, pages), the last to be evicted */
static void add_extent(Core *core, i64 s, i64 pages) {
    i64 e = core->unused_extent;
    if (e != NONE) {
        core->unused_extent = core->extents[e].after;
    } else {
        core->extents = grown(core, core->extents, core->extent_count, &core->extent_room, sizeof(Extent));
        e = core->extent_count++;
    }
    core->extents[e] = (Extent){s, pages, core->idle.last, NONE};
    if (core->idle.last != NONE) core->extents[core->idle.last].after = e;
    else core->idle.first = e;
    core->idle.last = e;
    core->seqs[s].extent = e;
    core->cached += pages;
}

/* ExtentPool.evict */
static void evict(Core *core, i64 pages) {
    while (pages > 0) {
        Extent *extent = &core->extents[core->idle.first];
        i64 gone = least(pages, extent->pages);
        extent->pages -= gone;
        core->cached -= gone;
        core->log.evictions += gone;
        pages -= gone;
        if (!extent->pages) remove_extent(core, core->idle.first);
    }
}

/* PagePool.take, PrefixPool.take */
static void take(Core *core, i64 pages) {
    core->free -= pages;
    if (core->free < 0) give_up(core);
    evict(core, core->cached - core->free);
}

/* ExtentPool.find: the pages that a sequence finds again, its own */
static i64 find(const Core *core, i64 s) {
    const Sequence *seq = &core->seqs[s];
    if (seq->extent == NONE) return 0;
    return least(core->extents[seq->extent].pages, (seq->known - 1) / core->config.page_size);
}

/* ExtentPool.claim */
static void claim(Core *core, i64 s, i64 found) {
    Sequence *seq = &core->seqs[s];
    if (found != core->extents[seq->extent].pages) give_up(core);
    remove_extent(core, seq->extent);
    core->cached -= found;
    core->free -= found;
    seq->own = found;
}

/* ExtentPool.keep */
static void keep(Core *core, i64 s, i64 full) {
    Sequence *seq = &core->seqs[s];
    if (!core->config.remembers || full <= seq->own) return;
    if (!seq->own && seq->extent != NONE) give_up(core);
    seq->own = full;
}

/* ExtentPool.give_back */
static void give_back(Core *core, i64 s, i64 pages) {
    i64 own = core->seqs[s].own;
    if (own) add_extent(core, s, own);
    core->seqs[s].own = 0;
    core->free += pages;
}

/* ExtentPool.takes_until_lost of the pages found by the head of the queue */
static i64 takes_until_lost(const Core *core, i64 s, i64 found) {
    i64 taken = core->free - core->cached;
    for (i64 e = core->idle.first; e != NONE; e = core->extents[e].after) {
        taken += core->extents[e].pages;
        if (e == core->seqs[s].extent) return taken - found;
    }
    return core->free;
}
