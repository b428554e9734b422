/* Sequences, the lists they are in, and heaps of them. */

/* Append to a list, or put in front of it. */
static void link_in(Core *core, List *list, int which, i64 s, int in_front) {
    Sequence *seq = &core->seqs[s];
    seq->before[which] = in_front ? NONE : list->last;
    seq->after[which] = in_front ? list->first : NONE;
    if (seq->before[which] != NONE) core->seqs[seq->before[which]].after[which] = s;
    else list->first = s;
    if (seq->after[which] != NONE) core->seqs[seq->after[which]].before[which] = s;
    else list->last = s;
    list->count++;
}

/* Take out of a list, from any place. */
static void link_out(Core *core, List *list, int which, i64 s) {
    Sequence *seq = &core->seqs[s];
    if (seq->before[which] != NONE) core->seqs[seq->before[which]].after[which] = seq->after[which];
    else list->first = seq->after[which];
    if (seq->after[which] != NONE) core->seqs[seq->after[which]].before[which] = seq->before[which];
    else list->last = seq->before[which];
    list->count--;
}

/* Sequence(request, index): the next arrival as a sequence; returns its place among the sequences. */
static i64 new_sequence(Core *core, i64 row) {
    const Arrivals *given = &core->arrivals;
    i64 s = core->unused;
    if (s != NONE) {
        core->unused = core->seqs[s].after[PLACE];
    } else {
        core->seqs = grown(core, core->seqs, core->seq_count, &core->seq_room, sizeof(Sequence));
        s = core->seq_count++;
    }
    Sequence *seq = &core->seqs[s];
    memset(seq, 0, sizeof *seq);
    seq->index = core->sent - 1;
    seq->prompt = seq->known = given->prompt[row];
    seq->goal = given->goal[row];
    seq->most = given->most[row];
    seq->cut_short = (char)given->cut_short[row];
    seq->priority = given->priority[row];
    seq->wanted = core->config.clients == CLOSED_LOOP ? core->now - core->config.delay : given->wanted[row];
    seq->id_place = given->id_place[row];
    seq->rank = given->rank[row];
    seq->serial = seq->entered = seq->last_step = seq->served_by = seq->extent = NONE;
    return s;
}

/* Nothing refers to the sequence any more, but for stale entries of heaps. */
static void forget(Core *core, i64 s) {
    if (core->seqs[s].extent != NONE) core->extents[core->seqs[s].extent].seq = NONE;
    core->seqs[s].after[PLACE] = core->unused;
    core->seqs[s].serial = core->seqs[s].pushed = NONE;
    core->seqs[s].decoding = core->seqs[s].waiting = 0;
    core->unused = s;
}

/* Sequence.positions */
static i64 positions(const Core *core, const Sequence *seq) {
    return seq->decoding ? seq->computed + core->step - seq->joined : seq->computed;
}

/* The order of two entries of a heap. */
static int before(const Entry *one, const Entry *other) {
    if (one->rank != other->rank) return one->rank < other->rank;
    if (one->key != other->key) return one->key < other->key;
    if (one->tie != other->tie) return one->tie < other->tie;
    return one->number < other->number;
}

/* heapq.heappush */
static void heap_push(Core *core, Heap *heap, Entry entry) {
    heap->entries = grown(core, heap->entries, heap->count, &heap->room, sizeof(Entry));
    i64 place = heap->count++;
    for (; place && before(&entry, &heap->entries[(place - 1) / 2]); place = (place - 1) / 2)
        heap->entries[place] = heap->entries[(place - 1) / 2];
    heap->entries[place] = entry;
}

/* heapq.heappop of the top */
static void heap_pop(Heap *heap) {
    Entry last = heap->entries[--heap->count];
    i64 place = 0, child;
    while ((child = 2 * place + 1) < heap->count) {
        if (child + 1 < heap->count && before(&heap->entries[child + 1], &heap->entries[child])) child++;
        if (!before(&heap->entries[child], &last)) break;
        heap->entries[place] = heap->entries[child];
        place = child;
    }
    if (heap->count) heap->entries[place] = last;
}
