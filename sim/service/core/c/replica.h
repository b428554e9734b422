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

/* Replica.settle, but for the plan: whether it is made now; else it is made after every other event of this instant */
static int settle(Core *core) {
    if (core->planning) return 0;
    core->planning = least(core->wake, next_arrival(core)) <= core->now;
    return !core->planning;
}

/* Replica.plan, once */
static void plan_once(Core *core) {
    core->planning = core->must_plan = 0;
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

/* Replica.plan, and at depth 2 the next one, which is due at once */
static void plan(Core *core) {
    do plan_once(core);
    while (core->must_plan && settle(core));
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
    if (core->must_plan && settle(core)) plan(core);
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

/* Intake.submit; whether the request was taken */
static int submit(Core *core, i64 row) {
    i64 complaint = core->arrivals.complaint[row];
    core->sent++;
    core->unsettled = 0;
    if (!complaint && core->queue.count >= core->config.queue_limit) complaint = QUEUE_IS_FULL;
    if (complaint) {
        reject(core, complaint);
        return 0;
    }
    i64 s = new_sequence(core, row);
    event(core, core->now, QUEUED, core->seqs[s].index, 0);
    int nobody_waits = !core->queue.count;
    push(core, s, needs(core, s), 0);
    core->unsettled = may_enter(core, core->seqs[s].needs, nobody_waits);
    return 1;
}

/* Replica.submit and replan_if_unsettled */
static int deliver(Core *core, i64 row) {
    int taken = submit(core, row);
    if (!core->flying) core->must_plan = 1;
    if (core->unsettled && core->flying && !core->must_plan) plan_at_boundary(core);
    if (core->must_plan && settle(core)) plan(core);
    return taken;
}

/* Clients.send, Distant.dispatch */
static void send(Core *core) {
    const Config *config = &core->config;
    i64 row = core->next++;
    if (config->clients != OPEN_LOOP && config->delay) {
        append(core, &core->on_way.rows, (i64[]){core->now + config->delay, row}, 2);
        core->in_flight++;
    } else if (deliver(core, row)) {
        core->in_flight++;
    } else if (config->clients == CLOSED_LOOP) {
        send_again(core, core->now + config->think);
    }
}

/* Window.send_on, ClosedLoop.send_next, OpenLoop.take */
static void send_on(Core *core) {
    const Config *config = &core->config;
    if (config->clients == CLOSED_LOOP && core->next < core->arrivals.count) send(core);
    if (config->clients == OPEN_LOOP) send(core);
    while (config->clients == WINDOW && core->next < core->due && core->in_flight < config->at_once) send(core);
}

/* Distant.deliver, OpenLoop.arrive, or a client that sends again */
static void arrive(Core *core) {
    if (first_of(&core->on_way) == core->now) {
        i64 row = core->on_way.rows.cells[core->on_way.first + 1];
        core->on_way.first += 2;
        if (!deliver(core, row)) client_ended(core);
        return;
    }
    if (own_arrival(core) == core->now) core->due++;
    else core->again.first++;
    send_on(core);
}

/* Whether nothing is left over. */
static int all_ended(const Core *core) {
    return core->log.ended == core->sent && !core->running.count && !core->queue.count &&
           core->free == core->config.pages && !core->over && !core->computed && !core->touched && !core->context;
}

/* bounds.run_to_end, as far as `plans` more plans, or to the end of the arrivals that are known */
static i64 run(Core *core, i64 plans) {
    for (i64 stop = core->plans + plans; core->plans < stop;) {
        if (core->due == core->arrivals.count && !core->arrivals.last) return MORE_ARRIVALS;
        i64 arrival = next_arrival(core), due = least(core->wake, arrival);
        if (arrival < core->now) return GIVEN_UP;
        if (core->planning && due > core->now) {
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
