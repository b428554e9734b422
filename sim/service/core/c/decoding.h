/* sim.engine.decoding.Decoders */

/* base_of */
static i64 base_of(const Sequence *seq) { return seq->computed - seq->joined; }

/* Decoders.join, with watch_one */
static void join(Core *core, i64 s) {
    Sequence *seq = &core->seqs[s];
    seq->decoding = 1;
    i64 base = seq->computed - core->step;
    core->count++;
    core->context += seq->computed;
    core->pages_needed[modulo(-base, core->config.page_size)]++;
    heap_push(core, &core->finishing, (Entry){0.0, seq->goal - base, 0, seq->serial, s, seq->serial});
    if (core->cost.needs_longest) heap_push(core, &core->bases, (Entry){0.0, -base, 0, seq->serial, s, seq->serial});
}

/* Decoders.leave, with Sequence.pause */
static void leave_decoders(Core *core, i64 s) {
    Sequence *seq = &core->seqs[s];
    seq->decoding = 0;
    seq->computed += core->step - seq->joined;
    seq->known = seq->computed + 1;
    seq->last_step = core->step - 1;
    core->count--;
    core->context -= seq->computed;
    core->pages_needed[modulo(core->step - seq->computed, core->config.page_size)]--;
}

/* Decoders.advance */
static int advance_decoders(Core *core, i64 steps) {
    core->step += steps;
    core->context += core->count * steps;
    return core->finishing.count && core->finishing.entries[0].key <= core->step;
}

/* Decoders.next_finish */
static i64 next_finish(Core *core) {
    for (;;) {
        const Entry *top = &core->finishing.entries[0];
        const Sequence *seq = &core->seqs[top->seq];
        if (seq->decoding && seq->serial == top->check && seq->goal - base_of(seq) == top->key) return top->key;
        heap_pop(&core->finishing);
    }
}

/* Decoders.longest */
static i64 longest(Core *core) {
    while (core->bases.count) {
        const Entry *top = &core->bases.entries[0];
        const Sequence *seq = &core->seqs[top->seq];
        if (seq->decoding && seq->serial == top->check && base_of(seq) == -top->key) return core->step - top->key;
        heap_pop(&core->bases);
    }
    return 0;
}

/* Decoders.pages_ahead: the pages begun in step j of a run */
static i64 pages_ahead(const Core *core, i64 j) { return core->pages_needed[(core->step + j) % core->config.page_size]; }

/* Decoders.steps_within */
static i64 steps_within(const Core *core, i64 pages, i64 most_steps) {
    i64 size = core->config.page_size;
    if (core->count * (most_steps / size + 1) <= pages) return most_steps;
    i64 steps = pages / core->count * size, left = pages % core->count;
    i64 looked = least(size, most_steps - steps);
    for (i64 j = 1; j <= looked; j++) {
        left -= pages_ahead(core, j);
        if (left < 0) break;
        steps++;
    }
    return least(steps, most_steps);
}
