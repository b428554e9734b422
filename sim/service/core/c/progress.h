/* sim.engine.progress: what steps do to the state. */

/* progress.end */
static void end(Core *core, i64 s, Batch *batch) {
    Sequence *seq = &core->seqs[s];
    core->over += !seq->over;
    seq->over = 1;
    append(core, &batch->ends, (i64[]){s, seq->serial}, 2);
}

/* progress.end_due, with Decoders.due */
static void end_due(Core *core, Batch *batch) {
    while (core->count && next_finish(core) <= core->step) {
        i64 s = core->finishing.entries[0].seq;
        heap_pop(&core->finishing);
        leave_decoders(core, s);
        close_stint(core, s);
        end(core, s, batch);
    }
}

/* progress.catch_up */
static void catch_up(Core *core, i64 s, Batch *batch) {
    Sequence *seq = &core->seqs[s];
    leave_catching_up(core, s);
    append(core, &batch->yields, (i64[]){s, seq->last_step}, 2);
    seq->known++;
    seq->last_step = core->step - 1;
    seq->joined = core->step;
    core->latest = most(core->latest, seq->serial);
    if (seq->computed == seq->goal) end(core, s, batch);
    else join(core, s);
}

/* progress.advance */
static void advance(Core *core, Batch *batch) {
    int some_due = advance_state(core, batch->tokens, 1);
    for (i64 row = 0; row < batch->work.count; row += 3) {
        i64 s = batch->work.cells[row], tokens = batch->work.cells[row + 2];
        Sequence *seq = &core->seqs[s];
        seq->computed += tokens;
        if (seq->computed == seq->known && tokens && !seq->over) catch_up(core, s, batch);
    }
    if (some_due) end_due(core, batch);
}

/* The pages that steps from `first` to before `stop` of a batch begin, the first step of all not counted. */
static i64 grown_pages(const Batch *batch, i64 first, i64 stop) {
    i64 pages = 0;
    for (i64 j = first; j < least(stop, batch->growing); j++) pages += batch->growth[j];
    return pages;
}

/* progress.proceed */
static void proceed(Core *core, Batch *batch, i64 steps) {
    fill(core, grown_pages(batch, batch->steps, batch->steps + steps));
    batch->steps += steps;
    if (advance_state(core, core->count, steps)) end_due(core, batch);
}

/* Batch.pass_over */
static void pass_over(Core *core, Batch *batch, i64 steps) {
    i64 pages = grown_pages(batch, batch->done - steps + 1, batch->done + 1);
    batch->row_context += batch->decode * steps;
    batch->live += batch->tokens * steps;
    batch->pages += pages;
    if (!core->config.reserves) batch->row_pages += pages;
}

/* progress.record of the next `steps` steps, with EventLog.chunk and run, and Batch.row_of */
static void record(Core *core, Batch *batch, i64 steps) {
    Log *log = &core->log;
    for (i64 row = 0; row < batch->work.count; row += 3) {
        const i64 *work = batch->work.cells + row;
        if (work[2])
            append(core, &log->chunks, (i64[]){log->steps, core->seqs[work[0]].index, work[1], work[2]}, 4);
    }
    i64 run[RUN_COLUMNS] = {
        batch->planned, batch->start,   steps,           batch->decode,  batch->prefill, batch->recomputed,
        batch->held,    batch->no_budget, batch->waiting, batch->reason,  batch->tokens,  batch->redone,
        0,              batch->row_context, batch->live,  batch->pages,   batch->row_pages, batch->cached,
    };
    append(core, &log->runs, run, RUN_COLUMNS);
    append(core, &log->durations, batch->durations + batch->first, steps);
    i64 none = 0;
    append(core, &log->growth, &none, 1);
    append(core, &log->growth, batch->growth + batch->done + 1, steps - 1);
    log->steps += steps;
    log->batches++;
    batch->first += steps;
    batch->lasting -= steps;
    batch->done += steps;
    if (batch->done < batch->steps) pass_over(core, batch, steps);
}

/* progress.finish */
static void finish(Core *core, i64 s, i64 now) {
    log_end(core, s, now);
    client_ended(core);
    if (core->seqs[s].running) append(core, &core->finished, &s, 1);
    else dequeue(core, s, now);
}

/* progress.harvest */
static void harvest(Core *core, Batch *batch, i64 now) {
    for (i64 row = 0; row < batch->yields.count; row += 2) {
        i64 index = core->seqs[batch->yields.cells[row]].index, before_it = batch->yields.cells[row + 1];
        event(core, now, before_it < 0 ? FIRST_TOKEN : RESUMED, index, before_it < 0 ? 0 : before_it);
    }
    i64 *ends = batch->ends.cells;
    for (i64 row = 2; row < batch->ends.count; row += 2) { /* a stable sort by admission number */
        i64 s = ends[row], serial = ends[row + 1], place = row;
        for (; place && ends[place - 1] > serial; place -= 2) {
            ends[place] = ends[place - 2];
            ends[place + 1] = ends[place - 1];
        }
        ends[place] = s;
        ends[place + 1] = serial;
    }
    for (i64 row = 0; row < batch->ends.count; row += 2) finish(core, batch->ends.cells[row], now);
}

/* progress.commit of the next `steps` steps, the last of which ends now */
static void commit(Core *core, Batch *batch, i64 now, i64 steps) {
    if (batch->done + steps > batch->steps) proceed(core, batch, batch->done + steps - batch->steps);
    record(core, batch, steps);
    if (batch->done < batch->growing) batch->start = now;
    if (batch->done == batch->steps && (batch->yields.count || batch->ends.count)) harvest(core, batch, now);
}
