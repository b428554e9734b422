/* sim.service.clients: when requests are sent. Their events at one instant may be taken in any order: each of the
   queues is first in, first out, and a window or a closed loop sends the requests in their order. */

/* A client sends again at an instant. */
static void send_again(Core *core, i64 instant) { append(core, &core->again.rows, &instant, 1); }

/* Window.ended, ClosedLoop.ended; with Distant, of a rejected request too */
static void client_ended(Core *core) {
    if (core->config.clients == CLOSED_LOOP) send_again(core, core->now + core->config.think);
    if (core->config.clients == WINDOW) {
        core->in_flight--;
        if (core->next < core->due) send_again(core, core->now);
    }
}

/* When the first row of a queue is due; NO_LIMIT if there is none. */
static i64 first_of(const Fifo *fifo) {
    return fifo->first < fifo->rows.count ? fifo->rows.cells[fifo->first] : NO_LIMIT;
}

/* When the next request is due on its own schedule. */
static i64 own_arrival(const Core *core) {
    int scheduled = core->config.clients != CLOSED_LOOP && core->due < core->arrivals.count;
    return scheduled ? core->arrivals.arrival[core->due] : NO_LIMIT;
}

/* When clients act next. */
static i64 next_arrival(const Core *core) {
    return least(own_arrival(core), least(first_of(&core->again), first_of(&core->on_way)));
}
