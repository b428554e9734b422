/* sim.engine.intake, and sim.service.replica with the clients' arrivals: one engine in virtual time. */

/* Replica.enter_tail */
static void enter_tail(Core *core, const Batch *batch) {
    core->in_tail = core->must_plan = 1;
    core->wake = core->now + batch->durations[batch->first];
    core->wakes_to = END_TAIL;
}

/* Replica.await_plan */
static void await_plan(Core *core, const Batch *batch) {
    i64 ahead = core->config.depth - 1;
    if (batch->lasting == ahead) {
        enter_tail(core, batch);
        return;
    }
    core->wake = batch->start;
    for (i64 j = 0; j < batch->lasting - ahead; j++) core->wake += batch->durations[batch->first + j];
    core->wakes_to = REACH_PLAN;
}

/* Replica.begin */
static void begin(Core *core, Batch *batch) {
    batch->start = core->now;
    core->flying = batch;
    await_plan(core, batch);
}

/* Replica.plan_at_boundary of the present instant */
static void plan_at_boundary(Core *core) {
    Batch *batch = core->in_tail ? core->following : core->flying;
    if (!batch || batch->lasting == 1) return;
    i64 elapsed = core->now - batch->start, boundaries = 0, passed = 0;
    if (elapsed > 0) {
        while (boundaries < batch->lasting && (passed += batch->durations[batch->first + boundaries]) < elapsed)
            boundaries++;
        boundaries++;
    }
    i64 kept = most(1, boundaries + core->config.depth - 1);
    if (kept >= batch->lasting) return;
    batch->lasting = kept;
    if (batch == core->flying) await_plan(core, batch);
}

/* A batch that is neither under way nor to follow. */
static Batch *unused_batch(Core *core) {
    Batch *batch = core->batches;
    while (batch == core->flying || batch == core->following) batch++;
    return batch;
}

/* Replica.plan */
static void plan(Core *core) {
    core->must_plan = 0;
    Batch *batch = unused_batch(core);
    do schedule(core, batch);
    while (batch->preempted && !batch->tokens && !core->flying);
    if (!batch->tokens) return;
    price(core, batch);
    if (core->flying) {
        core->following = batch;
        batch->start = core->flying->start + core->flying->durations[core->flying->first];
    } else {
        begin(core, batch);
    }
}

/* Replica.run_to_plan */
static void run_to_plan(Core *core, Batch *batch) {
    if (core->config.depth == 1) {
        core->flying = NULL;
        core->must_plan = 1;
        commit(core, batch, core->now, batch->lasting);
        return;
    }
    if (batch->lasting > 1) {
        proceed(core, batch, batch->done + batch->lasting - batch->steps);
        commit(core, batch, core->now, batch->lasting - 1);
    }
    enter_tail(core, batch);
}

/* Replica.end_tail */
static void end_tail(Core *core) {
    Batch *batch = core->flying, *following = core->following;
    core->flying = core->following = NULL;
    core->in_tail = 0;
    commit(core, batch, core->now, batch->lasting);
    if (following) begin(core, following);
    else core->must_plan = 1;
}

/* The wake-up that is not stale. */
static void wake_up(Core *core) {
    i64 to = core->wakes_to;
    core->wake = NO_LIMIT;
    core->wakes_to = ASLEEP;
    if (to == END_TAIL) end_tail(core);
    else run_to_plan(core, core->flying);
}

/* Intake.may_enter */
static int may_enter(const Core *core, i64 pages, int nobody_waited) {
    const Config *config = &core->config;
    if (core->running.count >= config->most_active)
        return nobody_waited && (core->step < core->closed_until || config->most_active < config->slots);
    int behind = config->appends && !nobody_waited && !config->chunk_limit;
    return !behind || pages <= core->free;
}

/* EventLog.reject; reasons are numbered by their first appearance */
static void reject(Core *core, i64 complaint) {
    i64 reason = 0;
    while (reason < core->reason_count && core->reasons[reason] != complaint) reason++;
    if (reason == core->reason_count) core->reasons[core->reason_count++] = complaint;
    event(core, core->now, REJECTED, core->sent - 1, reason);
    core->log.ended++;
}

/* Intake.submit */
static void submit(Core *core, i64 row) {
    i64 complaint = core->arrivals.complaint[row];
    core->sent++;
    core->unsettled = 0;
    if (!complaint && core->queue.count >= core->config.queue_limit) complaint = QUEUE_IS_FULL;
    if (complaint) {
        reject(core, complaint);
        return;
    }
    i64 s = new_sequence(core, row);
    event(core, core->now, QUEUED, core->seqs[s].index, 0);
    int nobody_waits = !core->queue.count;
    push(core, s, needs(core, s), 0);
    core->unsettled = may_enter(core, core->seqs[s].needs, nobody_waits);
}

/* OpenLoop.arrive, Replica.submit and replan_if_unsettled */
static void arrive(Core *core) {
    submit(core, core->next++);
    if (!core->flying) core->must_plan = 1;
    if (core->unsettled && core->flying && !core->must_plan) plan_at_boundary(core);
}

/* Whether nothing is left over. */
static int all_ended(const Core *core) {
    return core->log.ended == core->sent && !core->running.count && !core->queue.count &&
           core->free == core->config.pages && !core->over && !core->computed && !core->touched && !core->context;
}

/* bounds.run_to_end, as far as `plans` more plans, or to the end of the arrivals that are known */
static i64 run(Core *core, i64 plans) {
    for (i64 stop = core->plans + plans; core->plans < stop;) {
        if (core->next == core->arrivals.count && !core->arrivals.last) return MORE_ARRIVALS;
        i64 arrival = core->next < core->arrivals.count ? core->arrivals.arrival[core->next] : NO_LIMIT;
        i64 due = least(core->wake, arrival);
        if (arrival < core->now) return GIVEN_UP;
        if (core->must_plan && due > core->now) {
            plan(core);
        } else if (due >= LATEST) {
            return due == NO_LIMIT && all_ended(core) ? ENDED : GIVEN_UP;
        } else if (core->wake <= arrival) {
            core->now = core->wake;
            wake_up(core);
        } else {
            core->now = arrival;
            arrive(core);
        }
    }
    return PAUSED;
}
