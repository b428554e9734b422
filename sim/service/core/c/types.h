/* What the compiled core is made of; named as in the Python kernel, whose docstrings say what each part means. */
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

enum { QUEUED, REJECTED, ADMITTED, FIRST_TOKEN, RESUMED, PREEMPTED, LOST, FINISHED, RELEASED, DEQUEUED, CANCELLED };
enum { NO_DEMAND, NO_BUDGET, NO_MEMORY, BLOCKED, LIMITED };
enum { LONGEST_RUN = 256, NONE = -1, RUN_COLUMNS = 18, COMPLAINTS = 4, QUEUE_IS_FULL = 4 };

#define NO_LIMIT ((i64)1 << 62)
#define LATEST ((i64)1 << 62)
#define LONGEST_STEP ((double)((i64)1 << 53))

/* A growing array of rows of 64-bit integers: a part of the event log, or a list of the core's own. */
typedef struct {
    i64 *cells;
    i64 count, room;
} Table;

/* The log of sim.log.events, since the last time it was emptied; `steps` and `ended` count from the beginning. */
typedef struct {
    Table events, stays, stints, chunks, runs, durations, growth, rests;
    i64 steps, batches, ended, queried, requeried, evictions;
} Log;

/* sim.cost.knots.Knots, laid out for the whole numbers up to `last`. */
typedef struct {
    const double *values;
    i64 last;
    double growth;
} Knots;

enum { NOWHERE, STRAIGHT, BENT };

/* sim.cost.table.Lines (STRAIGHT: two knots) or sim.cost.surface.Surface (BENT: one for each of `along`). */
typedef struct {
    i64 kind, count;
    const double *along;
    const Knots *knots;
} Lines;

enum { UNIT, AFFINE, ROOFLINE, TABLE };

/* A cost of sim.cost.forms or sim.cost.table, perhaps within sim.cost.scaled.Scaled. */
typedef struct {
    i64 form, scaled, unit, least, least_with_prompt, needs_longest, graph_count, has_decode_dense, has_sequences;
    double decode_factor, prompts_factor;
    double per_context_token, per_chunk_work, per_sequence, per_page, host, raggedness;
    double per_mixed_context_token, per_tail_token, unsplit;
    double base, per_prefill_token, weight_pass, per_token, per_chunk, crossing, launch;
    const i64 *graph_sizes;
    Knots dense, decode_dense, sequences;
    Lines decode, chunk, beside;
} Cost;

enum { BY_ARRIVAL, BY_RANK, BY_URGENCY };
enum { OPEN_LOOP, WINDOW, CLOSED_LOOP };

/* The engine: sim.engine.config.EngineConfig, the pool, the order, the admission rule and the victim; and the clients
   of sim.service.clients, whose requests are `delay` ns on their way (of an open loop, arrivals have it in them). */
typedef struct {
    i64 slots, token_budget, chunked, depth, most_active, admit_every, chunk_limit, chunk_limit_adapts, queue_limit;
    i64 pages, page_size, remembers, reserves, whole, spare;
    i64 order, appends, least_urgent;
    i64 clients, at_once, think, delay;
    double per_generated;
} Config;

/* Requests in order of arrival: sim.request.Request and sim.sequence.Target, a column each. */
typedef struct {
    i64 count, last;
    const i64 *arrival, *prompt, *goal, *most, *cut_short, *complaint, *priority, *wanted, *id_place;
    const double *rank;
} Arrivals;

enum { PLACE, CATCHING_UP, LISTS };

/* sim.sequence.Sequence: `place` in the queue or among the running, and among those that catch up, as linked lists. */
typedef struct {
    i64 index, prompt, goal, most, priority, wanted, id_place;
    i64 serial, entered, known, computed, joined, last_step, peak, reserved, needs, pushed, served, served_by;
    i64 own, extent;
    double rank;
    i64 before[LISTS], after[LISTS];
    char decoding, over, cut_short, running, waiting, catching_up;
} Sequence;

typedef struct {
    i64 first, last, count;
} List;

/* sim.memory.extents.Extent, in a list of those that no sequence holds; `seq` finds it, NONE if it has left. */
typedef struct {
    i64 seq, pages, before, after;
} Extent;

/* An entry of a heap: by key[0..2], then by number; `check` tells whether it is still valid. */
typedef struct {
    double rank;
    i64 key, tie, number, seq, check;
} Entry;

typedef struct {
    Entry *entries;
    i64 count, room;
} Heap;

/* sim.engine.batch.Batch with its shape and its row; `work` holds (sequence, start, tokens), `yields` (sequence,
   step before), `ends` (sequence, admission number), `pieces` (start, tokens). */
typedef struct {
    i64 number, planned, budget, tokens, reason, preempted, found, in_order;
    Table work, yields, ends, pieces;
    i64 decodes, context, longest, chunks, chunk_tokens, double_work, pages, largest;
    i64 start, steps, done, decode, prefill, recomputed, held, no_budget, waiting, redone, row_context, live, row_pages, cached;
    i64 growth[LONGEST_RUN], growing, durations[LONGEST_RUN], first, lasting;
} Batch;

enum { ASLEEP, REACH_PLAN, END_TAIL };
enum { ENDED, MORE_ARRIVALS, PAUSED, GIVEN_UP };

/* First in, first out: rows of a table from `first` on. */
typedef struct {
    Table rows;
    i64 first;
} Fifo;

/* Everything: state, scheduler and replica of one engine, and the arrivals to come. */
typedef struct {
    Config config;
    Cost cost;
    Arrivals arrivals;
    i64 next, due, sent, in_flight; /* rows sent, rows due, requests at the engine, requests of a window */
    Fifo again, on_way;             /* when clients send again; (when a request arrives, its row) */
    Log log;

    Sequence *seqs;
    i64 seq_room, seq_count, unused;
    List running, catching_up, queue;
    Heap ranked;
    i64 pushes, *alike, alike_room, smallest;
    Table finished, snapshot;
    i64 free, over, computed, touched;
    Extent *extents;
    i64 extent_room, extent_count, unused_extent, cached;
    List idle;
    i64 admitted, closed_until;

    i64 step, count, context, latest, *pages_needed;
    Heap finishing, bases;

    Batch batches[3], *flying, *following;
    i64 plans, now, in_tail, must_plan, planning, unsettled, wake, wakes_to;
    i64 reasons[COMPLAINTS + 1], reason_count;
    jmp_buf give_up;
} Core;

/* The core gives up: the Python kernel runs instead, and raises what is to be raised. */
static void give_up(Core *core) { longjmp(core->give_up, 1); }

/* Memory for one entry more of a growing array. */
static void *grown(Core *core, void *at, i64 count, i64 *room, size_t size) {
    if (count < *room) return at;
    i64 wanted = 2 * *room + 64;
    void *found = realloc(at, (size_t)wanted * size);
    if (!found) give_up(core);
    *room = wanted;
    return found;
}

/* Append `width` integers. */
static void append(Core *core, Table *table, const i64 *row, i64 width) {
    while (table->count + width > table->room)
        table->cells = grown(core, table->cells, table->room, &table->room, sizeof(i64));
    memcpy(table->cells + table->count, row, (size_t)width * sizeof(i64));
    table->count += width;
}

static i64 least(i64 a, i64 b) { return a < b ? a : b; }
static i64 most(i64 a, i64 b) { return a > b ? a : b; }
static i64 pages_for(const Core *core, i64 positions) {
    return (positions + core->config.page_size - 1) / core->config.page_size;
}

/* A number modulo another, as in Python: from 0 to below it. */
static i64 modulo(i64 a, i64 b) { return ((a % b) + b) % b; }
