/* sim.engine.state.EngineState and what it writes into sim.log.events.EventLog. */

/* EventLog.event */
static void event(Core *core, i64 now, i64 kind, i64 index, i64 value) {
    append(core, &core->log.events, (i64[]){now, kind, index, value}, 4);
}

/* EngineState.chunk_limit */
static i64 chunk_limit(const Core *core) {
    const Config *config = &core->config;
    i64 present = core->running.count + core->queue.count;
    if (!config->chunk_limit || present <= 1) return NO_LIMIT;
    return config->chunk_limit_adapts ? most(config->chunk_limit, config->token_budget / present) : config->chunk_limit;
}

/* Admission.positions */
static i64 admission_positions(const Core *core, const Sequence *seq, i64 computed) {
    if (core->config.reserves) return seq->most;
    return core->config.whole ? seq->known : computed;
}

/* EngineState.needs */
static i64 needs(const Core *core, i64 s) {
    const Sequence *seq = &core->seqs[s];
    return pages_for(core, admission_positions(core, seq, seq->known));
}

/* EngineState.growth */
static i64 growth(const Core *core, i64 s, i64 tokens) {
    i64 computed = positions(core, &core->seqs[s]);
    return pages_for(core, computed + tokens) - pages_for(core, computed);
}

/* EngineState.fill */
static void fill(Core *core, i64 pages) {
    if (core->config.reserves) core->touched += pages;
    else take(core, pages);
}

/* EngineState.keep_pages: the positions of a sequence whose tokens are known to the step being planned */
static i64 written(const Core *core, const Sequence *seq, i64 filled) {
    return least(filled, seq->known - (seq->last_step >= core->log.steps));
}

/* EngineState.give */
static void give(Core *core, Batch *batch, i64 s, i64 tokens) {
    i64 start = core->seqs[s].computed;
    fill(core, pages_for(core, start + tokens) - pages_for(core, start));
    append(core, &batch->work, (i64[]){s, start, tokens}, 3);
    batch->budget -= tokens;
    keep(core, s, written(core, &core->seqs[s], start + tokens) / core->config.page_size);
}

/* EngineState.enter, with CacheUse.look_up */
static void enter_slot(Core *core, i64 s, i64 serial, i64 found, i64 pages) {
    Sequence *seq = &core->seqs[s];
    *(seq->serial >= 0 ? &core->log.requeried : &core->log.queried) += seq->known;
    if (found) claim(core, s, found);
    if (core->config.reserves) {
        seq->reserved = pages;
        take(core, pages);
    }
    seq->serial = serial;
    seq->entered = core->step;
    seq->computed = found * core->config.page_size;
    core->computed += seq->computed;
    seq->running = seq->catching_up = 1;
    link_in(core, &core->running, PLACE, s, 0);
    link_in(core, &core->catching_up, CATCHING_UP, s, 0);
}

/* A sequence no longer catches up. */
static void leave_catching_up(Core *core, i64 s) {
    if (!core->seqs[s].catching_up) return;
    core->seqs[s].catching_up = 0;
    link_out(core, &core->catching_up, CATCHING_UP, s);
}

/* EngineState.leave */
static void leave(Core *core, i64 s, i64 held) {
    Sequence *seq = &core->seqs[s];
    i64 pages = pages_for(core, held);
    if (core->config.reserves) core->touched -= pages;
    give_back(core, s, core->config.reserves ? seq->reserved : pages);
    if (seq->entered < core->step) append(core, &core->log.stays, (i64[]){seq->index, seq->entered, core->step}, 3);
    core->computed -= seq->computed;
    core->over -= seq->over;
    seq->running = 0;
    link_out(core, &core->running, PLACE, s);
    leave_catching_up(core, s);
}

/* EngineState.sort_out */
static void sort_out(Core *core) {
    while (core->catching_up.count) leave_catching_up(core, core->catching_up.first);
    for (i64 s = core->running.first; s != NONE; s = core->seqs[s].after[PLACE]) {
        Sequence *seq = &core->seqs[s];
        if (seq->decoding || seq->over) continue;
        seq->catching_up = 1;
        link_in(core, &core->catching_up, CATCHING_UP, s, 0);
    }
}

/* EngineState.close_stint */
static void close_stint(Core *core, i64 s) {
    const Sequence *seq = &core->seqs[s];
    if (seq->last_step >= seq->joined)
        append(core, &core->log.stints, (i64[]){seq->index, seq->joined, seq->last_step + 1}, 3);
    keep(core, s, seq->computed / core->config.page_size);
}

/* EngineState.stop_decoding */
static void stop_decoding(Core *core, i64 s) {
    leave_decoders(core, s);
    close_stint(core, s);
}

/* EngineState.advance */
static int advance_state(Core *core, i64 tokens, i64 steps) {
    core->computed += tokens * steps;
    return advance_decoders(core, steps);
}

/* EngineState.log_end */
static void log_end(Core *core, i64 s, i64 now) {
    const Sequence *seq = &core->seqs[s];
    if (seq->cut_short) event(core, now, CANCELLED, seq->index, core->log.steps);
    else event(core, now, FINISHED, seq->index, seq->goal + 1 - seq->prompt);
    core->log.ended++;
}

/* EngineState.dequeue */
static void dequeue(Core *core, i64 s, i64 now) {
    pop(core, s);
    event(core, now, DEQUEUED, core->seqs[s].index, 0);
    forget(core, s);
}
