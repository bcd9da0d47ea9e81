/* everywhere.c - commands that concern more than a group of keys. */
#include "tools/migrate/migrate.h"

#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"

static bool fail_again(bool *ret_again, const struct rd_err *err)
{
    *ret_again = err == NULL || err->code == RD_ERR_PROTOCOL;
    return false;
}

/* ---- functions and scripts ---- */

/* Adds REPLACE to FUNCTION LOAD and FUNCTION RESTORE, so that they can be repeated. */
static size_t with_replace(const struct resp_command *cmd, struct rd_slice *argv, size_t max)
{
    size_t n = 0;
    bool load = cmd->argc == 3 && rd_word_is(cmd->argv[1], "load");
    for (size_t i = 0; i < cmd->argc && n < max; i++) {
        argv[n++] = cmd->argv[i];
        if (i == 1 && load)
            argv[n++] = rd_slice_str("REPLACE");
    }
    if (cmd->argc == 3 && rd_word_is(cmd->argv[1], "restore"))
        argv[n++] = rd_slice_str("REPLACE");
    return n;
}

/* A library that is deleted twice. */
static bool is_harmless(const struct resp_command *cmd, struct rd_slice reply)
{
    static const char gone[] = "ERR Library not found";
    return rd_word_is(cmd->argv[1], "delete") && reply.len >= sizeof gone - 1 &&
           strncasecmp((const char *)reply.ptr, gone, sizeof gone - 1) == 0;
}

bool migrate_everywhere(struct migrate *m, const struct repl_capture_event *ev, bool *ret_again,
                        struct rd_err *err)
{
    struct rd_slice argv[8];
    char text[RD_ERR_TEXT_MAX];
    struct resp_node node;
    size_t argc = with_replace(&ev->command, argv, 6);
    for (size_t i = 0; i < m->target.n_nodes; i++) {
        struct migrate_node *to = &m->target.nodes[i];
        if (!client_peer_send(to->peer, argv, argc, err) || !client_peer_next(to->peer, &node, err))
            return fail_again(ret_again, err);
        if (node.type != RESP_ERROR || is_harmless(&ev->command, node.text))
            continue;
        *ret_again = migrate_is_temporary(node.text);
        rd_show_escape(text, sizeof text, node.text);
        rd_err_set(err, *ret_again ? RD_ERR_PROTOCOL : RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                   "the target does not accept the functions of offset %llu: %s",
                   (unsigned long long)ev->offset, text);
        rd_err_origin(err, to->target.name);
        return false;
    }
    return true;
}

/* ---- FLUSHALL and FLUSHDB ---- */

struct flush {
    struct migrate *m;
    const struct migrate_stream *stream;
    const struct repl_capture_event *ev;
    struct migrate_node *node;
    uint64_t db;
};

/* Of several sources, each flushes the keys of its slots. */
static bool is_flushed(const struct flush *f, struct rd_slice key)
{
    unsigned slot = rd_hash_slot(key);
    if (f->m->n_streams > 1 && !capture_slots_have(&f->stream->slots, slot))
        return false;
    return migrate_plan_wants(&f->m->plan, f->db, key) &&
           !migrate_is_applied(f->stream, f->ev, f->m->target.clustered ? slot : 0);
}

/* One key a command: in a cluster they are in several slots. */
static bool unlink_keys(const struct flush *f, const struct client_peer_item *keys,
                        struct rd_err *err)
{
    struct resp_node node;
    size_t n = 0;
    for (size_t i = 0; i < keys->n_children; i++) {
        struct rd_slice key = client_peer_item_at(keys, i)->text;
        const struct rd_slice argv[] = {rd_slice_str("UNLINK"), key};
        if (!is_flushed(f, key))
            continue;
        if (!client_peer_send(f->node->peer, argv, 2, err))
            return false;
        n++;
    }
    for (; n > 0; n--) {
        if (!client_peer_next(f->node->peer, &node, err))
            return false;
        if (node.type == RESP_ERROR)
            return client_peer_refused(f->node->peer, node.text, err);
    }
    return true;
}

static bool flush_db(const struct flush *f, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    char line[64], cursor[RD_NUM_I64_MAX + 1] = "0";
    snprintf(line, sizeof line, "SELECT %llu", (unsigned long long)f->db);
    bool ok = client_peer_ask(f->node->peer, line, &reply, err);
    do {
        snprintf(line, sizeof line, "SCAN %s COUNT 1000", cursor);
        ok = ok && client_peer_ask(f->node->peer, line, &reply, err);
        const struct client_peer_item *next = ok ? client_peer_item_at(&reply.items[0], 0) : NULL;
        const struct client_peer_item *keys = ok ? client_peer_item_at(&reply.items[0], 1) : NULL;
        if (ok && (next == NULL || keys == NULL || next->text.len >= sizeof cursor))
            ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the reply to SCAN is not valid");
        if (ok) {
            memcpy(cursor, next->text.ptr, next->text.len);
            cursor[next->text.len] = '\0';
            ok = unlink_keys(f, keys, err);
        }
    } while (ok && strcmp(cursor, "0") != 0);
    ok = ok && client_peer_ask(f->node->peer, "SELECT 0", &reply, err);
    client_peer_reply_done(&reply);
    return ok;
}

/* The databases of the reply to INFO keyspace: "db0:keys=…". */
static bool flush_dbs(struct flush *f, bool all, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(f->node->peer, "INFO keyspace", &reply, err);
    struct rd_slice text = ok ? reply.items[0].text : rd_slice(NULL, 0);
    for (size_t at = 0; ok && at + 3 < text.len; at++) {
        uint64_t db = 0;
        if ((at > 0 && text.ptr[at - 1] != '\n') || memcmp(text.ptr + at, "db", 2) != 0)
            continue;
        for (at += 2; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++)
            db = db * 10 + (uint64_t)(text.ptr[at] - '0');
        f->db = db;
        if (all || db == f->ev->place.db)
            ok = flush_db(f, err);
    }
    client_peer_reply_done(&reply);
    return ok;
}

bool migrate_flush(struct migrate *m, const struct migrate_stream *stream,
                   const struct repl_capture_event *ev, bool *ret_again, struct rd_err *err)
{
    struct flush f = {.m = m, .stream = stream, .ev = ev};
    if (m->n_renames > 0)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "FLUSHALL and FLUSHDB cannot be done with renamed keys");
    for (size_t i = 0; i < m->target.n_nodes; i++) {
        f.node = &m->target.nodes[i];
        if (!flush_dbs(&f, m->plan.all_dbs, err)) {
            rd_err_origin(err, f.node->target.name);
            return fail_again(ret_again, err);
        }
    }
    return true;
}
