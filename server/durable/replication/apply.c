/* The stream of the master: its commands run here, and its bytes go to this server's replicas. */
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication_impl.h"

#include <stdio.h>

void apply_begin(struct repl_link *link)
{
    struct durable *durable = link->durable;
    struct client *c = client_new(durable->sessions, link->conn);
    c->flags |= CLIENT_MASTER;
    c->authenticated = true;
    c->session.role = ENGINE_MASTER;
    c->session.db = link->db;
    c->reply.off = true;
    link->client = c;
    link->has_place = true;
    link->ahead = (struct ahead){.at = 0};
    link_watch(link);
}

/* A replica whose disk fails has less data than its master assumes. */
static void check_disk(struct durable *durable)
{
    enum { PAUSE_S = 10 };
    struct replication *r = durable->replication;
    if (persist_refusal(durable) == NULL)
        return;
    if (!durable->loop->settings.replica_ignore_disk_write_errors)
        log_panic("Replica was unable to write command to disk.");
    int64_t now_s = durable->loop->mono_us / 1000000;
    if (r->disk_logged_s != 0 && now_s - r->disk_logged_s < PAUSE_S)
        return;
    r->disk_logged_s = now_s;
    log_warning("Replica is applying a command even though it is unable to write to disk.");
}

void apply_pass(struct repl_link *link, struct rd_slice bytes)
{
    if (!repl_master_pass(link->durable->replication->master, bytes))
        replication_no_memory();
}

/* Replicas of this server get a transaction as a whole, so that each of them can continue here. */
static void pass_on(struct repl_link *link, const struct repl_event *ev)
{
    bool open = ev->place.in_multi && ev->place.kind != REPL_EXEC;
    if (!open && link->held.len == 0) {
        apply_pass(link, ev->bytes);
        return;
    }
    if (!rd_buf_add(&link->held, ev->bytes.ptr, ev->bytes.len))
        replication_no_memory();
    if (open)
        return;
    apply_pass(link, rd_buf_slice(&link->held));
    rd_buf_done(&link->held);
    link->held = (struct rd_buf){0};
}

/* False: the connection is closed. */
static bool run(struct repl_link *link, const struct repl_event *ev)
{
    char what[128], name[64], why[DISPATCH_WHY];
    bool newer = !link->master_is_old;
    enum dispatch_applied applied =
        dispatch_from_master(link->client, newer, ev->command.argc, ev->command.argv, why);
    if (RD_LIKELY(applied == DISPATCH_APPLIED) || !newer)
        return true;
    rd_err_quote(name, sizeof name, ev->command.argv[0]);
    const char *kind = applied == DISPATCH_UNKNOWN        ? "the command"
                       : applied == DISPATCH_UNKNOWN_FORM ? "a form of the command"
                                                          : "what changes the data by the command";
    snprintf(what, sizeof what, "%s %s", kind, name);
    link_unsupported(link, what, applied == DISPATCH_UNKNOWN ? "" : why);
    link_drop(link);
    return false;
}

void apply_command(struct repl_link *link, const struct repl_event *ev)
{
    struct client *c = link->client;
    if (ev->place.kind != REPL_PING && ev->place.kind != REPL_GETACK) {
        if (ev->place.kind == REPL_WRITE)
            check_disk(link->durable);
        ahead(&link->ahead, engine_db(link->durable->sessions->engine, c->session.db),
              repl_psync_rest(link->psync), ev->command.offset + ev->bytes.len);
        if (!run(link, ev))
            return;
    } else {
        c->last_command = engine_command_resolve(ev->command.argv, ev->command.argc);
    }
    pass_on(link, ev);
    if (!ev->place.in_multi || ev->place.kind == REPL_EXEC)
        link->db = c->session.db;
}
