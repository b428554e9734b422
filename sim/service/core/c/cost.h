/* sim.cost: the same expressions in the same order, in doubles, without fused multiplication and addition. */

/* Knots.__call__ */
static double at(const Knots *knots, i64 x) {
    if (x <= knots->last) return knots->values[x];
    return knots->values[knots->last] + knots->growth * (double)(x - knots->last);
}

/* forms.padded */
static i64 padded(const Cost *cost, i64 tokens) {
    for (i64 place = 0; place < cost->graph_count; place++)
        if (cost->graph_sizes[place] >= tokens) return cost->graph_sizes[place];
    return tokens;
}

/* Surface.line(x)(position): BentLine.__call__ */
static double bent(const Lines *lines, i64 x, double position) {
    i64 piece = 0;
    while (piece + 1 < lines->count && lines->along[piece + 1] <= position) piece++;
    i64 from = piece + 1 < lines->count ? piece : piece - 1;
    double low = at(&lines->knots[from], x), high = at(&lines->knots[from + 1], x);
    double rise = (high - low) / (lines->along[from + 1] - lines->along[from]);
    if (from != piece && !(rise > 0.0)) rise = 0.0;
    double beyond = position - lines->along[piece];
    return at(&lines->knots[piece], x) + rise * (beyond > 0.0 ? beyond : 0.0);
}

/* Lines.attention or Surface.attention */
static double attention_of(const Lines *lines, i64 start, i64 tokens) {
    if (lines->kind == BENT) return bent(lines, tokens, (double)start);
    i64 last = lines->knots[0].last, inside = least(tokens, last);
    double base = at(&lines->knots[0], inside), rise = at(&lines->knots[1], inside);
    if (tokens > last) {
        double beyond = at(&lines->knots[1], tokens);
        base += (double)(tokens - last) * (rise + beyond) / 2;
        rise = beyond;
    }
    return base + rise * (double)start;
}

/* Shape.excess */
static double excess(const Batch *batch) { return (double)(batch->decodes * batch->longest - batch->context); }

/* Curve.tail */
static double tail(const Cost *cost, const Batch *batch) {
    if (cost->per_tail_token == 0.0 || !batch->decodes) return 0.0;
    i64 launched = cost->form == AFFINE ? batch->decodes : padded(cost, batch->decodes);
    if (!batch->chunks && (double)launched < cost->unsplit) return 0.0;
    return cost->per_tail_token * (excess(batch) / (double)batch->decodes);
}

/* Affine.fixed */
static double affine_fixed(const Cost *cost, const Batch *batch) {
    double exact = cost->base + cost->host + cost->per_sequence * (double)batch->decodes + tail(cost, batch);
    if (batch->chunks) {
        exact += cost->per_prefill_token * (double)batch->chunk_tokens;
        exact += cost->per_chunk_work * ((double)batch->double_work / 2);
    }
    return exact;
}

/* Roofline.fixed */
static double roofline_fixed(const Cost *cost, const Batch *batch) {
    double weights = cost->weight_pass * cost->weight_pass;
    double arithmetic = cost->per_token * (double)padded(cost, batch->decodes + batch->chunk_tokens);
    arithmetic *= arithmetic;
    double exact = cost->host + sqrt(sqrt(weights * weights + arithmetic * arithmetic));
    exact += cost->per_sequence * (double)(batch->decodes + batch->chunks) + tail(cost, batch);
    if (batch->chunks)
        exact += cost->per_chunk * (double)batch->chunks + cost->per_chunk_work * ((double)batch->double_work / 2);
    return exact;
}

/* Table.lines */
static const Lines *lines_of(const Cost *cost, const Batch *batch) {
    return cost->beside.kind != NOWHERE && batch->chunks ? &cost->beside : &cost->decode;
}

/* Table.attention */
static double attention(const Cost *cost, const Batch *batch) {
    double exact = cost->per_chunk_work * ((double)batch->double_work / 2) - cost->launch * (double)(batch->chunks - 1);
    for (i64 at_piece = 0; at_piece < batch->pieces.count; at_piece += 2)
        exact += attention_of(&cost->chunk, batch->pieces.cells[at_piece], batch->pieces.cells[at_piece + 1]);
    return exact + cost->crossing * (double)batch->decodes * (double)batch->largest;
}

/* Table.fixed */
static double table_fixed(const Cost *cost, const Batch *batch) {
    const Knots *dense = batch->chunks || !cost->has_decode_dense ? &cost->dense : &cost->decode_dense;
    double exact = cost->host + at(dense, padded(cost, batch->decodes + batch->chunk_tokens));
    if (cost->has_sequences) exact += at(&cost->sequences, batch->decodes + batch->chunks);
    exact += cost->per_sequence * (double)(batch->decodes + batch->chunks);
    if (batch->decodes) {
        const Lines *lines = lines_of(cost, batch);
        double alone = tail(cost, batch), base = at(&lines->knots[0], batch->decodes);
        if (lines->kind == STRAIGHT)
            exact += alone > base ? alone : base;
        else if (alone != 0.0)
            exact += alone - base > 0.0 ? alone - base : 0.0;
    }
    if (batch->chunks) exact += attention(cost, batch);
    return exact;
}

/* fixed of each form */
static double fixed(const Cost *cost, const Batch *batch) {
    if (cost->form == AFFINE) return affine_fixed(cost, batch);
    return cost->form == ROOFLINE ? roofline_fixed(cost, batch) : table_fixed(cost, batch);
}

/* Curve.slope, Table.slope */
static double slope(const Cost *cost, const Batch *batch) {
    double each = batch->chunks ? cost->per_context_token + cost->per_mixed_context_token : cost->per_context_token;
    if (cost->form != TABLE || !batch->decodes) return each;
    const Lines *lines = lines_of(cost, batch);
    if (lines->kind == BENT) return each;
    return each + at(&lines->knots[1], batch->decodes) / (double)batch->decodes;
}

/* A duration rounded half to even, at least `shortest`; gives up from 104 days on: sums of them fit 64 bits. */
static i64 rounded(Core *core, double exact, i64 shortest) {
    double whole = rint(exact);
    if (!(whole < LONGEST_STEP)) give_up(core);
    return most(shortest, (i64)whole);
}

/* Scaled.step of a duration */
static i64 scaled(Core *core, const Batch *batch, i64 duration) {
    const Cost *cost = &core->cost;
    if (!cost->scaled) return duration;
    return rounded(core, (batch->chunks ? cost->prompts_factor : cost->decode_factor) * (double)duration, 1);
}

/* StepCost.step and run: the durations of the steps for which the batch holds */
static void price(Core *core, Batch *batch) {
    const Cost *cost = &core->cost;
    batch->first = 0;
    batch->lasting = batch->growing;
    if (cost->form == UNIT) {
        for (i64 j = 0; j < batch->growing; j++) batch->durations[j] = scaled(core, batch, cost->unit);
        return;
    }
    i64 shortest = batch->chunks ? cost->least_with_prompt : cost->least;
    double same = fixed(cost, batch), rise = slope(cost, batch), ragged = 0.0;
    if (cost->raggedness != 0.0) {
        same += cost->raggedness * rise * excess(batch);
        ragged = cost->raggedness * excess(batch);
    }
    const Lines *lines = cost->form == TABLE && batch->decodes ? lines_of(cost, batch) : NULL;
    i64 pages = batch->pages;
    for (i64 j = 0; j < batch->growing; j++) {
        double context = (double)(batch->context + j * batch->decodes);
        pages += j ? batch->growth[j] : 0;
        double exact = same + rise * context + cost->per_page * (double)pages;
        if (lines && lines->kind == BENT)
            exact += bent(lines, batch->decodes, (context + ragged) / (double)batch->decodes);
        batch->durations[j] = scaled(core, batch, rounded(core, exact, shortest));
    }
}
