#include "repl/master.h"

#include "base/mem.h"
#include "base/num.h"
#include "repl/master/master_impl.h"

bool repl_master_new(struct repl_master **ret, const struct repl_master_opts *opts,
                     const struct repl_replid *id, struct rd_err *err)
{
    struct repl_master *m = rd_calloc(1, sizeof *m);
    if (m == NULL)
        return rd_err_nomem(err, sizeof *m);
    m->opts = *opts;
    m->id = *id;
    *ret = m;
    return true;
}

void repl_master_free(struct repl_master *m)
{
    if (m == NULL)
        return;
    repl_backlog_free(m->backlog);
    rd_free(m);
}

void repl_master_set_size(struct repl_master *m, uint64_t backlog_size)
{
    m->opts.backlog_size = backlog_size;
    if (m->backlog != NULL)
        repl_backlog_set_size(m->backlog, backlog_size);
}

/* ---- the history ---- */

bool repl_master_keep(struct repl_master *m)
{
    return m->backlog != NULL ||
           repl_backlog_new(&m->backlog, m->offset, m->opts.backlog_size, NULL);
}

static void forget_second(struct repl_master *m)
{
    m->id2 = (struct repl_replid){{0}};
    m->second = 0;
}

void repl_master_drop(struct repl_master *m, const struct repl_replid *fresh)
{
    repl_backlog_free(m->backlog);
    m->backlog = NULL;
    m->id = *fresh;
    forget_second(m);
}

void repl_master_rename(struct repl_master *m, const struct repl_replid *id)
{
    m->id2 = m->id;
    m->second = m->offset;
    m->id = *id;
}

void repl_master_promote(struct repl_master *m, const struct repl_replid *fresh)
{
    repl_master_rename(m, fresh);
    m->db_known = false; /* the replicas may have selected any database */
}

bool repl_master_become(struct repl_master *m, const struct repl_replid *id, uint64_t offset)
{
    struct repl_backlog *fresh;
    if (!repl_backlog_new(&fresh, offset, m->opts.backlog_size, NULL))
        return false;
    repl_backlog_free(m->backlog);
    m->backlog = fresh;
    m->offset = offset;
    m->id = *id;
    m->db_known = false;
    forget_second(m);
    return true;
}

bool repl_master_restore(struct repl_master *m, const struct repl_replid *id, uint64_t offset)
{
    struct repl_replid own = m->id;
    if (!repl_master_become(m, id, offset))
        return false;
    repl_master_promote(m, &own);
    return true;
}

/* ---- the stream ---- */

static size_t digits(uint64_t n)
{
    char text[RD_NUM_I64_MAX];
    return rd_num_put_u64(text, n);
}

static size_t command_len(size_t argc, const struct rd_slice *argv)
{
    size_t len = 3 + digits(argc);
    for (size_t i = 0; i < argc; i++)
        len += 5 + digits(argv[i].len) + argv[i].len;
    return len;
}

static void add(struct repl_master *m, const void *ptr, size_t len)
{
    repl_backlog_add(m->backlog, ptr, len);
    m->offset += len;
}

static void add_head(struct repl_master *m, char type, uint64_t n)
{
    char text[RD_NUM_I64_MAX + 3] = {type};
    size_t len = 1 + rd_num_put_u64(text + 1, n);
    text[len++] = '\r';
    text[len++] = '\n';
    add(m, text, len);
}

/* The space is reserved. */
static void add_command(struct repl_master *m, size_t argc, const struct rd_slice *argv)
{
    add_head(m, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        add_head(m, '$', argv[i].len);
        add(m, argv[i].ptr, argv[i].len);
        add(m, "\r\n", 2);
    }
}

bool repl_master_write(struct repl_master *m, unsigned db, size_t argc, const struct rd_slice *argv)
{
    char number[RD_NUM_I64_MAX];
    const struct rd_slice select[] = {rd_slice_str("SELECT"),
                                      rd_slice(number, rd_num_put_u64(number, db))};
    bool selects = !m->db_known || m->db != db;
    if (m->backlog == NULL)
        return true;
    size_t len = command_len(argc, argv) + (selects ? command_len(2, select) : 0);
    if (!repl_backlog_reserve(m->backlog, len))
        return false;
    if (selects)
        add_command(m, 2, select);
    add_command(m, argc, argv);
    m->db_known = true;
    m->db = db;
    return true;
}

bool repl_master_words(struct repl_master *m, size_t argc, const char *const *words)
{
    enum { WORDS_MAX = 4 };
    struct rd_slice argv[WORDS_MAX];
    for (size_t i = 0; i < argc && i < WORDS_MAX; i++)
        argv[i] = rd_slice_str(words[i]);
    if (m->backlog == NULL)
        return true;
    if (!repl_backlog_reserve(m->backlog, command_len(argc, argv)))
        return false;
    add_command(m, argc, argv);
    return true;
}

bool repl_master_pass(struct repl_master *m, struct rd_slice bytes)
{
    if (m->backlog == NULL || bytes.len == 0)
        return true;
    if (!repl_backlog_reserve(m->backlog, bytes.len))
        return false;
    add(m, bytes.ptr, bytes.len);
    return true;
}

bool repl_master_ping(struct repl_master *m)
{
    return repl_master_words(m, 1, (const char *const[]){"PING"});
}

bool repl_master_getack(struct repl_master *m)
{
    return repl_master_words(m, 3, (const char *const[]){"REPLCONF", "GETACK", "*"});
}

/* In a snapshot by mark, the line would be read as a part of the snapshot. */
static bool awaits_answer(const struct repl_peer *peer)
{
    return peer->state == REPL_PEER_WAITS || (peer->state == REPL_PEER_SAVES && !peer->by_mark);
}

void repl_master_keep_alive(struct repl_master *m)
{
    for (struct repl_peer *peer = m->first; peer != NULL; peer = peer->next)
        if (awaits_answer(peer))
            repl_peer_say(peer, "\n");
}

/* ---- acknowledgements ---- */

bool repl_peer_is_online(const struct repl_peer *peer)
{
    return peer->state == REPL_PEER_ONLINE || peer->state == REPL_PEER_PROVES;
}

unsigned repl_master_acked(const struct repl_master *m, uint64_t offset)
{
    unsigned n = 0;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next)
        n += peer->state == REPL_PEER_ONLINE && peer->ack >= offset;
    return n;
}

unsigned repl_master_good(const struct repl_master *m, int64_t max_lag_ms, int64_t now_ms)
{
    unsigned n = 0;
    for (const struct repl_peer *peer = m->first; peer != NULL; peer = peer->next)
        n += repl_peer_is_online(peer) && now_ms - peer->ack_ms <= max_lag_ms;
    return n;
}

uint64_t repl_master_memory(const struct repl_master *m, uint64_t *ret_of_peers)
{
    uint64_t all = m->backlog != NULL ? repl_backlog_memory(m->backlog) : 0;
    *ret_of_peers = m->first != NULL && all > m->opts.backlog_size ? all - m->opts.backlog_size : 0;
    return all;
}
