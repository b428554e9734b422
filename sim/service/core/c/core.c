/* The compiled core: one engine in virtual time, with the log of the Python kernel (sim.engine, sim.service).

   Covered engines are those of sim.service.core.covered. Every function names the Python function that it equals. */
#include <stddef.h>

#include "types.h"
#include "sequences.h"
#include "cost.h"
#include "decoding.h"
#include "queue.h"
#include "extents.h"
#include "state.h"
#include "clients.h"
#include "progress.h"
#include "scheduler.h"
#include "replica.h"

/* A new engine; NULL if there is no memory. */
Core *core_new(const Config *config, const Cost *cost) {
    Core *core = calloc(1, sizeof(Core));
    if (!core) return NULL;
    core->config = *config;
    core->cost = *cost;
    core->free = config->pages;
    core->unused = core->unused_extent = core->latest = NONE;
    core->running = core->catching_up = core->queue = core->idle = (List){NONE, NONE, 0};
    core->smallest = core->wake = NO_LIMIT;
    core->pages_needed = calloc((size_t)config->page_size, sizeof(i64));
    return core;
}

/* Free all memory of an engine, but that of core_new's arguments and of the arrivals. */
void core_free(Core *core) {
    if (!core) return;
    Log *log = &core->log;
    Table *tables[] = {&log->events,    &log->stays,  &log->stints, &log->chunks,    &log->runs,
                       &log->durations, &log->growth, &log->rests,  &core->finished,
                       &core->snapshot, &core->again.rows, &core->on_way.rows};
    for (size_t n = 0; n < sizeof tables / sizeof *tables; n++) free(tables[n]->cells);
    for (int n = 0; n < 3; n++) {
        free(core->batches[n].work.cells);
        free(core->batches[n].yields.cells);
        free(core->batches[n].ends.cells);
        free(core->batches[n].pieces.cells);
    }
    free(core->seqs);
    free(core->extents);
    free(core->ranked.entries);
    free(core->finishing.entries);
    free(core->bases.entries);
    free(core->alike);
    free(core->pages_needed);
    free(core);
}

/* The next requests; the arrays must stay until core_run asks for more. Only an open loop may ask. */
void core_feed(Core *core, const Arrivals *arrivals) {
    core->arrivals = *arrivals;
    core->next = core->due = 0;
}

/* Run for some plans: ENDED, MORE_ARRIVALS, PAUSED, or GIVEN_UP: the Python kernel is to run instead. */
i64 core_run(Core *core, i64 plans) {
    if (!core->pages_needed || setjmp(core->give_up)) return GIVEN_UP;
    if (core->config.clients == CLOSED_LOOP && !core->sent && !core->again.rows.count) /* ClosedLoop.begin */
        for (i64 n = 0; n < least(core->config.at_once, core->arrivals.count); n++) send_again(core, 0);
    return run(core, plans);
}

/* The log since the last time it was emptied. */
Log *core_log(Core *core) { return &core->log; }

/* Empty the log: its rows have been read. */
void core_empty_log(Core *core) {
    Log *log = &core->log;
    log->events.count = log->stays.count = log->stints.count = log->chunks.count = 0;
    log->runs.count = log->durations.count = log->growth.count = log->rests.count = 0;
}

/* The reasons of rejections by their numbers, in order of first appearance; returns how many. */
i64 core_reasons(const Core *core, i64 *complaints) {
    memcpy(complaints, core->reasons, (size_t)core->reason_count * sizeof(i64));
    return core->reason_count;
}
