/* sim.engine.queue.Waiting over an order by arrival (a preempted sequence in front) or by a rank (a heap). */

/* The rank of a sequence: its own, moved by the tokens it has generated. */
static Entry entry_of(Core *core, i64 s) {
    const Sequence *seq = &core->seqs[s];
    if (core->config.order == BY_URGENCY)
        return (Entry){(double)seq->priority, seq->wanted, seq->id_place, seq->index, s, seq->pushed};
    double rank = seq->rank;
    if (core->config.per_generated != 0.0) rank += core->config.per_generated * (double)(seq->known - seq->prompt);
    return (Entry){rank, 0, 0, seq->index, s, seq->pushed};
}

/* Waiting.note: one sequence more, or less, that needs so many pages */
static void note(Core *core, i64 needs, i64 more) {
    while (needs >= core->alike_room) {
        i64 old = core->alike_room;
        core->alike = grown(core, core->alike, old, &core->alike_room, sizeof(i64));
        memset(core->alike + old, 0, (size_t)(core->alike_room - old) * sizeof(i64));
    }
    core->alike[needs] += more;
    if (more > 0 && needs < core->smallest) core->smallest = needs;
}

/* Waiting.push and push_back */
static void push(Core *core, i64 s, i64 needs, int back) {
    Sequence *seq = &core->seqs[s];
    seq->pushed = core->pushes++;
    seq->waiting = 1;
    seq->needs = needs;
    link_in(core, &core->queue, PLACE, s, back);
    if (core->config.order != BY_ARRIVAL) heap_push(core, &core->ranked, entry_of(core, s));
    note(core, needs, 1);
}

/* Waiting.pop */
static i64 pop(Core *core, i64 s) {
    Sequence *seq = &core->seqs[s];
    seq->waiting = 0;
    link_out(core, &core->queue, PLACE, s);
    note(core, seq->needs, -1);
    if (!core->queue.count) core->smallest = NO_LIMIT;
    return seq->needs;
}

/* Order.head */
static i64 head(Core *core) {
    if (core->config.order == BY_ARRIVAL) return core->queue.first;
    for (;;) {
        const Entry *top = &core->ranked.entries[0];
        const Sequence *seq = &core->seqs[top->seq];
        if (seq->waiting && seq->pushed == top->check) return top->seq;
        heap_pop(&core->ranked);
    }
}

/* Waiting.smallest_need */
static i64 smallest_need(Core *core) {
    while (!core->alike[core->smallest]) core->smallest++;
    return core->smallest;
}
