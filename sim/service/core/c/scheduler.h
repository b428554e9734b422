/* sim.engine: preemption, admission, fast_path and scheduler. */

/* Batch.tokens_of */
static i64 tokens_of(const Core *core, const Batch *batch, i64 s) {
    const Sequence *seq = &core->seqs[s];
    if (seq->decoding) return !batch->in_order ? 1 : seq->served_by == batch->number ? seq->served : 0;
    i64 tokens = 0;
    for (i64 row = 0; row < batch->work.count; row += 3)
        if (batch->work.cells[row] == s) tokens += batch->work.cells[row + 2];
    return tokens;
}

/* Batch.withdraw */
static i64 withdraw(Core *core, Batch *batch, i64 s) {
    i64 tokens = tokens_of(core, batch, s), kept = 0, *work = batch->work.cells;
    batch->budget += tokens;
    if (core->seqs[s].decoding) {
        core->seqs[s].served_by = NONE;
        return tokens;
    }
    for (i64 row = 0; row < batch->work.count; row += 3) {
        if (work[row] == s) continue;
        memmove(work + kept, work + row, 3 * sizeof(i64));
        kept += 3;
    }
    batch->work.count = kept;
    return tokens;
}

/* PagePool.withdraw of EngineState.unwritten */
static void withdraw_unwritten(Core *core, i64 s) {
    Sequence *seq = &core->seqs[s];
    if (!seq->decoding) seq->own = least(seq->own, written(core, seq, seq->computed) / core->config.page_size);
}

/* preemption.preempt, with Sequence.lose */
static void preempt(Core *core, i64 s, Batch *batch) {
    i64 tokens = withdraw(core, batch, s);
    withdraw_unwritten(core, s);
    if (core->seqs[s].decoding) stop_decoding(core, s);
    leave(core, s, core->seqs[s].computed + tokens);
    Sequence *seq = &core->seqs[s];
    i64 lost = seq->computed;
    seq->peak = most(seq->peak, lost);
    seq->computed = 0;
    event(core, batch->planned, PREEMPTED, seq->index, seq->over ? 0 : lost);
    push(core, s, needs(core, s), 1);
}

/* LastAdmitted.choose or LeastUrgent.choose */
static i64 victim(const Core *core) {
    if (!core->config.least_urgent) return core->running.last;
    i64 found = core->running.first;
    for (i64 s = core->seqs[found].after[PLACE]; s != NONE; s = core->seqs[s].after[PLACE]) {
        const Sequence *a = &core->seqs[s], *b = &core->seqs[found];
        i64 later = a->priority != b->priority ? a->priority > b->priority
                    : a->wanted != b->wanted   ? a->wanted > b->wanted
                                               : a->id_place > b->id_place;
        if (later) found = s;
    }
    return found;
}

/* Scheduler.make_room */
static int make_room(Core *core, i64 s, i64 tokens, Batch *batch) {
    while (growth(core, s, tokens) > core->free) {
        i64 chosen = victim(core);
        preempt(core, chosen, batch);
        batch->preempted = 1;
        batch->reason = NO_MEMORY;
        if (chosen == s) return 0;
    }
    return 1;
}

/* Scheduler.continue_in_order */
static void continue_in_order(Core *core, Batch *batch) {
    i64 limit = chunk_limit(core), stopped = 0;
    batch->in_order = 1;
    core->snapshot.count = 0;
    for (i64 s = core->running.first; s != NONE; s = core->seqs[s].after[PLACE]) append(core, &core->snapshot, &s, 1);
    for (i64 place = 0; place < core->snapshot.count; place++) {
        i64 s = core->snapshot.cells[place];
        Sequence *seq = &core->seqs[s];
        if (!seq->running || seq->over) continue;
        i64 wanted = seq->decoding ? 1 : least(seq->known - seq->computed, limit);
        i64 tokens = stopped ? 0 : least(wanted, batch->budget);
        if (!core->config.reserves && !make_room(core, s, tokens, batch)) {
            stopped = 1;
            continue;
        }
        seq->served = tokens;
        seq->served_by = batch->number;
        if (seq->decoding && tokens) {
            fill(core, growth(core, s, tokens));
            batch->budget -= tokens;
            continue;
        }
        if (seq->decoding) stop_decoding(core, s);
        give(core, batch, s, tokens);
    }
    sort_out(core);
}

/* fast_path.all_can_be_served */
static int all_can_be_served(const Core *core, i64 pages, i64 budget, i64 limit) {
    for (i64 s = core->catching_up.first; s != NONE; s = core->seqs[s].after[CATCHING_UP]) {
        const Sequence *seq = &core->seqs[s];
        i64 wanted = least(seq->known - seq->computed, limit), tokens = least(wanted, budget);
        if (tokens < wanted && seq->serial <= core->latest) return 0;
        budget -= tokens;
        pages += growth(core, s, tokens);
    }
    return core->config.reserves || pages <= core->free;
}

/* fast_path.serve_all */
static int serve_all(Core *core, Batch *batch) {
    i64 pages = core->pages_needed[core->step % core->config.page_size], left = batch->budget - core->count;
    i64 limit = chunk_limit(core);
    if (left < 0 || !all_can_be_served(core, pages, left, limit)) return 0;
    batch->budget -= core->count;
    fill(core, pages);
    for (i64 s = core->catching_up.first; s != NONE; s = core->seqs[s].after[CATCHING_UP]) {
        const Sequence *seq = &core->seqs[s];
        give(core, batch, s, least(least(seq->known - seq->computed, limit), batch->budget));
    }
    return 1;
}

/* admission.has_memory_for */
static int has_memory_for(const Core *core, i64 s, i64 computed) {
    i64 pages = pages_for(core, admission_positions(core, &core->seqs[s], computed));
    return pages + (core->running.count ? core->config.spare : 0) <= core->free;
}

/* admission.enter, with admit; returns the obstacle, NONE if it was admitted */
static i64 enter(Core *core, i64 s, Batch *batch, i64 limit) {
    const Config *config = &core->config;
    i64 found = batch->found = find(core, s), start = found * config->page_size;
    i64 wanted = least(core->seqs[s].known - start, limit), tokens = least(wanted, batch->budget);
    if (!tokens || (tokens < wanted && wanted <= config->token_budget && !config->chunked)) return NO_BUDGET;
    if (!has_memory_for(core, s, start + tokens)) return smallest_need(core) <= core->free ? BLOCKED : NO_MEMORY;
    batch->found = 0;
    if (core->seqs[s].last_step >= core->log.steps) give_up(core);
    i64 pages = pop(core, s);
    enter_slot(core, s, core->admitted++, found, pages);
    core->closed_until = core->step + config->admit_every;
    event(core, batch->planned, ADMITTED, core->seqs[s].index, start);
    give(core, batch, s, tokens);
    return NONE;
}

/* admission.admit_waiting */
static i64 admit_waiting(Core *core, Batch *batch) {
    const Config *config = &core->config;
    i64 limit = chunk_limit(core);
    if (core->running.count && core->step < core->closed_until) return LIMITED;
    while (core->queue.count) {
        if (core->running.count >= config->most_active)
            return config->most_active < config->slots ? LIMITED : NO_DEMAND;
        if (!batch->budget) return NO_BUDGET;
        i64 obstacle = enter(core, head(core), batch, limit);
        if (obstacle != NONE) return obstacle;
    }
    return NO_DEMAND;
}

/* Batch.count, with Shape.add_chunk and add_decode */
static void count_work(Core *core, Batch *batch, i64 s, i64 start, i64 tokens) {
    const Sequence *seq = &core->seqs[s];
    if (!tokens) {
        batch->no_budget += !seq->over;
        return;
    }
    batch->tokens += tokens;
    i64 again = seq->peak - start;
    if (!seq->over) {
        if (again > 0) {
            batch->recomputed++;
            batch->redone += least(again, tokens);
        } else if (start < seq->prompt) {
            batch->prefill++;
        } else {
            batch->decode++;
        }
    }
    if (again > 0 || start < seq->prompt) {
        batch->chunks++;
        batch->chunk_tokens += tokens;
        batch->double_work += tokens * (2 * start + tokens);
        batch->largest = most(batch->largest, tokens);
        append(core, &batch->pieces, (i64[]){start, tokens}, 2);
    } else {
        batch->decodes++;
        batch->context += start;
        batch->longest = most(batch->longest, start);
    }
}

/* fast_path.measure */
static void measure(Core *core, Batch *batch) {
    batch->decodes = batch->decode = batch->tokens = core->count;
    batch->context = batch->row_context = core->context;
    batch->longest = core->cost.needs_longest ? longest(core) : 0;
    for (i64 row = 0; row < batch->work.count; row += 3) {
        const i64 *work = batch->work.cells + row;
        count_work(core, batch, work[0], work[1], work[2]);
    }
    batch->held = core->over;
    batch->waiting = core->queue.count;
    batch->live = core->computed + batch->tokens;
    batch->row_pages = core->config.pages - core->free;
    batch->cached = core->cached;
    batch->pages = core->config.reserves ? core->touched : batch->row_pages;
}

/* fast_path.look_ahead */
static void look_ahead(Core *core, Batch *batch) {
    if (batch->preempted || batch->tokens != core->count || !core->count || core->over) return;
    i64 repeat = least(next_finish(core) - core->step, LONGEST_RUN);
    if (batch->reason == LIMITED && core->step < core->closed_until)
        repeat = least(repeat, core->closed_until - core->step);
    if (!core->config.reserves && repeat > 1) {
        i64 spare = core->free - (batch->reason == BLOCKED ? smallest_need(core) : 0);
        if (batch->found) spare = least(spare, takes_until_lost(core, head(core), batch->found));
        repeat = 1 + steps_within(core, spare, repeat - 1);
    }
    for (i64 j = 1; j < repeat; j++) batch->growth[j] = pages_ahead(core, j);
    batch->growing = most(repeat, 1);
}

/* Scheduler.evict_finished, with EngineState.release */
static void evict_finished(Core *core, i64 now) {
    for (i64 place = 0; place < core->finished.count; place++) {
        i64 s = core->finished.cells[place];
        leave(core, s, core->seqs[s].computed);
        event(core, now, RELEASED, core->seqs[s].index, core->seqs[s].over);
        forget(core, s);
    }
    core->finished.count = 0;
}

/* Batch(planned, budget) in the place of one that has ended */
static void renew(Core *core, Batch *batch) {
    Table work = batch->work, yields = batch->yields, ends = batch->ends, pieces = batch->pieces;
    work.count = yields.count = ends.count = pieces.count = 0;
    memset(batch, 0, offsetof(Batch, growth));
    batch->work = work;
    batch->yields = yields;
    batch->ends = ends;
    batch->pieces = pieces;
    batch->number = core->plans++;
    batch->planned = batch->start = core->now;
    batch->budget = core->config.token_budget;
    batch->steps = batch->growing = 1;
    batch->first = batch->lasting = 0;
    batch->growth[0] = 0;
}

/* Scheduler.plan */
static void schedule(Core *core, Batch *batch) {
    evict_finished(core, core->now);
    renew(core, batch);
    if (!serve_all(core, batch)) continue_in_order(core, batch);
    if (core->queue.count && !batch->preempted) batch->reason = admit_waiting(core, batch);
    measure(core, batch);
    if (!batch->tokens) {
        if (core->config.remembers) append(core, &core->log.rests, (i64[]){core->now, core->cached}, 2);
        return;
    }
    look_ahead(core, batch);
    advance(core, batch);
}
