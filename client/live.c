#include "client/live.h"

#include "base/mem.h"
#include "base/num.h"
#include "client/live_impl.h"

#include <stdio.h>

enum {
    DEPTH_FIRST = 32,
    DEPTH_MAX = 512,
    TURN_LONG = 4 << 20,  /* bytes in one turn: request fewer keys */
    TURN_SHORT = 1 << 20, /* ask for more */
    TRIES = 5
};

static struct rd_slice cut_front(struct rd_slice s, size_t n)
{
    return rd_slice(s.ptr + n, s.len - n);
}

static bool fail(const struct client_live *live, const char *what, struct rd_err *err)
{
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s", what);
    rd_err_origin(err, live->opts->target->name);
    return false;
}

static bool wants(const struct client_live *live, uint64_t db, const struct rd_slice *name)
{
    const struct client_live_opts *opts = live->opts;
    return opts->wants == NULL || opts->wants(opts->ctx, db, name);
}

/* ---- expiries ---- */

/* Whether the server has PEXPIRETIME (7.0) and allows it. The key need not exist. */
static bool choose_expire_command(struct client_live *live, struct rd_err *err)
{
    struct resp_node node;
    live->expire_command = "PEXPIRETIME";
    const struct rd_slice argv[2] = {rd_slice_str(live->expire_command), rd_slice_str("")};
    if (!client_peer_send(live->peer, argv, 2, err) || !client_peer_next(live->peer, &node, err))
        return false;
    live->result->rough = node.type == RESP_ERROR;
    if (live->result->rough)
        live->expire_command = "PTTL";
    return true;
}

/* With PTTL: the time that expiries are relative to. */
static bool look_at_clock(struct client_live *live, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    int64_t part[2] = {0};
    if (!live->result->rough)
        return true;
    bool ok = client_peer_ask(live->peer, "TIME", &reply, err);
    for (size_t i = 0; ok && i < 2; i++) {
        const struct client_peer_item *item = client_peer_item_at(reply.items, i);
        if (item == NULL || !rd_num_get_i64(item->text, &part[i]) || part[i] < 0 ||
            part[i] > INT64_MAX / 1000)
            ok = fail(live, "unexpected reply to TIME", err);
    }
    live->server_ms = part[0] * 1000 + part[1] / 1000;
    client_peer_reply_done(&reply);
    return ok;
}

/* ---- keys ---- */

static void count(struct client_live *live, const struct client_peer_item *key,
                  enum client_live_outcome outcome)
{
    struct client_live_result *result = live->result;
    char quoted[120];
    switch (outcome) {
    case CLIENT_LIVE_CHANGED:
        result->changing++;
        result->keys++;
        break;
    case CLIENT_LIVE_READ:
        result->keys++;
        break;
    case CLIENT_LIVE_GONE:
        result->gone++;
        break;
    case CLIENT_LIVE_UNKNOWN:
        if (result->unknown++ == 0)
            snprintf(result->first_unknown, sizeof result->first_unknown, "%s in db %llu",
                     rd_err_quote(quoted, sizeof quoted, key->text), (unsigned long long)live->db);
        break;
    }
}

/* Reads a key that changed between two requests again. The last attempt is accepted unchanged. */
static bool read_again(struct client_live *live, const struct client_peer_item *key,
                       struct rd_err *err)
{
    enum client_live_outcome outcome = CLIENT_LIVE_CHANGED;
    uint64_t bytes = 0;
    for (int left = TRIES; left > 0 && outcome == CLIENT_LIVE_CHANGED; left--)
        if (!look_at_clock(live, err) || !client_live_ask(live, key->text, err) ||
            !client_live_take(live, key->text, left == 1, &outcome, &bytes, err))
            return false;
    count(live, key, outcome);
    return true;
}

static void adapt(struct client_live *live, uint64_t bytes)
{
    if (bytes > TURN_LONG && live->depth > 1)
        live->depth /= 2;
    else if (bytes < TURN_SHORT && live->depth < DEPTH_MAX)
        live->depth *= 2;
}

/* A turn: requests keys[0 … n) and reads the answers. */
static bool read_turn(struct client_live *live, const struct client_peer_item *const *keys,
                      size_t n, struct rd_err *err)
{
    enum client_live_outcome outcomes[DEPTH_MAX];
    uint64_t bytes = 0;
    if (!look_at_clock(live, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!client_live_ask(live, keys[i]->text, err))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!client_live_take(live, keys[i]->text, false, &outcomes[i], &bytes, err))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (outcomes[i] != CLIENT_LIVE_CHANGED)
            count(live, keys[i], outcomes[i]);
        else if (!read_again(live, keys[i], err))
            return false;
    }
    adapt(live, bytes);
    return true;
}

static bool read_page(struct client_live *live, const struct client_peer_item *page,
                      struct rd_err *err)
{
    const struct client_peer_item *keys[DEPTH_MAX];
    const struct client_peer_item *key = page + 1;
    size_t n = 0;
    for (size_t i = 0; i < page->n_children; i++, key += key->span) {
        if (wants(live, live->db, &key->text))
            keys[n++] = key;
        if (n < live->depth)
            continue;
        if (!read_turn(live, keys, n, err))
            return false;
        n = 0;
    }
    return n == 0 || read_turn(live, keys, n, err);
}

static bool scan(struct client_live *live, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    char cursor[32] = "0";
    bool ok;
    do {
        const struct rd_slice argv[] = {rd_slice_str("SCAN"), rd_slice_str(cursor),
                                        rd_slice_str("COUNT"), rd_slice_str("500")};
        ok = client_peer_ask_argv(live->peer, argv, 4, &reply, err);
        if (!ok)
            break;
        const struct client_peer_item *next = client_peer_item_at(reply.items, 0);
        const struct client_peer_item *page = client_peer_item_at(reply.items, 1);
        if (page == NULL || page->type != RESP_ARRAY || next->text.len >= sizeof cursor) {
            ok = fail(live, "unexpected reply to SCAN", err);
            break;
        }
        memcpy(cursor, next->text.ptr, next->text.len);
        cursor[next->text.len] = '\0';
        ok = read_page(live, page, err);
    } while (ok && strcmp(cursor, "0") != 0);
    client_peer_reply_done(&reply);
    return ok;
}

/* ---- databases ---- */

static bool read_db(struct client_live *live, uint64_t db, struct rd_err *err)
{
    char number[RD_NUM_I64_MAX];
    struct resp_node node;
    const struct rd_slice argv[2] = {rd_slice_str("SELECT"),
                                     rd_slice(number, rd_num_put_u64(number, db))};
    if (!wants(live, db, NULL))
        return true;
    bool selected =
        live->db == UINT64_MAX && db == (live->opts->target->has_db ? live->opts->target->db : 0);
    live->db = db;
    return (selected || (client_peer_send(live->peer, argv, 2, err) &&
                         client_peer_next_value(live->peer, &node, err))) &&
           client_live_put_db(live, err) && scan(live, err);
}

/* The number of a line "db12:keys=…"; the rest of the text after it. */
static bool next_db(struct rd_slice *text, uint64_t *ret)
{
    while (text->len > 0) {
        const uint8_t *end = memchr(text->ptr, '\n', text->len);
        size_t len = end != NULL ? (size_t)(end - text->ptr) : text->len;
        struct rd_slice line = rd_slice(text->ptr, len);
        *text = cut_front(*text, end != NULL ? len + 1 : len);
        const uint8_t *colon = len > 2 ? memchr(line.ptr, ':', len) : NULL;
        if (colon != NULL && line.ptr[0] == 'd' && line.ptr[1] == 'b' &&
            rd_num_get_u64(rd_slice(line.ptr + 2, (size_t)(colon - line.ptr) - 2), ret))
            return true;
    }
    return false;
}

static bool read_dbs(struct client_live *live, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    uint64_t db = live->opts->target->db;
    if (live->opts->target->has_db)
        return read_db(live, db, err);
    bool ok = client_peer_ask(live->peer, "INFO keyspace", &reply, err);
    struct rd_slice text = ok ? reply.items[0].text : (struct rd_slice){0};
    while (ok && next_db(&text, &db))
        ok = read_db(live, db, err);
    client_peer_reply_done(&reply);
    return ok;
}

bool client_live_read(const struct client_live_opts *opts, const struct client_live_out *out,
                      struct client_live_result *ret, struct rd_err *err)
{
    struct client_live live = {
        .opts = opts, .result = ret, .to = out, .db = UINT64_MAX, .depth = DEPTH_FIRST};
    *ret = (struct client_live_result){0};
    if (!client_peer_open(&live.peer, opts->target, err))
        return false;
    bool ok = choose_expire_command(&live, err) && client_live_begin_snapshot(&live, err) &&
              (!opts->functions || client_live_put_functions(&live, err)) && read_dbs(&live, err) &&
              client_live_end_snapshot(&live, err);
    rd_buf_done(&live.out);
    client_peer_close(live.peer);
    return ok;
}
