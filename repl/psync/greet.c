/* greet.c - the handshake before the snapshot or the stream: one command, one line of reply. */
#include <stdio.h>
#include <strings.h>

#include "base/num.h"
#include "repl/psync/psync_impl.h"

enum { NUMBER_SIZE = RD_NUM_I64_MAX + 1 };

static bool is_wanted(const struct repl_psync *p, enum repl_step step)
{
    switch (step) {
    case REPL_STEP_AUTH:
        return p->with_password;
    case REPL_STEP_PORT:
        return p->opts.port != 0;
    case REPL_STEP_ADDRESS:
        return p->ip != NULL;
    case REPL_STEP_RDB_ONLY:
        return p->opts.rdb_only;
    case REPL_STEP_RDB_FILTER:
        return p->rdb_filter != NULL;
    case REPL_STEP_CAPA:
        return !p->opts.no_eof || !p->opts.no_psync2;
    case REPL_STEP_VERSION:
        return p->version != NULL;
    case REPL_STEP_PSYNC:
        return !p->opts.old_sync;
    default:
        return true;
    }
}

static void put_replconf(struct repl_psync *p, const char *name, const char *value)
{
    repl_psync_put(p, (const char *const[]){"REPLCONF", name, value, NULL});
}

static void put_port(struct repl_psync *p)
{
    char port[NUMBER_SIZE];
    snprintf(port, sizeof port, "%u", (unsigned)p->opts.port);
    put_replconf(p, "listening-port", port);
}

static void put_auth(struct repl_psync *p)
{
    struct rd_slice argv[3] = {rd_slice_str("AUTH")};
    size_t argc = 1;
    if (p->user != NULL)
        argv[argc++] = rd_slice_str(p->user);
    argv[argc++] = rd_buf_slice(&p->password);
    repl_psync_put_slices(p, argc, argv);
}

static void put_capa(struct repl_psync *p)
{
    if (p->opts.no_eof || p->opts.no_psync2)
        put_replconf(p, "capa", p->opts.no_eof ? "psync2" : "eof");
    else
        repl_psync_put(p, (const char *const[]){"REPLCONF", "capa", "eof", "capa", "psync2", NULL});
}

/* Masters count bytes from 1. The command requests the first missing byte. */
static void put_psync(struct repl_psync *p)
{
    const struct repl_resume *from = &p->opts.resume;
    char offset[NUMBER_SIZE] = "-1";
    const char *id = "?";
    if (repl_replid_is_set(&from->replid)) {
        id = from->replid.hex;
        offset[rd_num_put_u64(offset, from->offset + 1)] = 0;
    }
    const char *failover = p->opts.failover ? "FAILOVER" : NULL;
    repl_psync_put(p, (const char *const[]){"PSYNC", id, offset, failover, NULL});
}

static void send_step(struct repl_psync *p)
{
    switch (p->step) {
    case REPL_STEP_PING:
        repl_psync_put(p, (const char *const[]){"PING", NULL});
        break;
    case REPL_STEP_AUTH:
        put_auth(p);
        break;
    case REPL_STEP_PORT:
        put_port(p);
        break;
    case REPL_STEP_ADDRESS:
        put_replconf(p, "ip-address", p->ip);
        break;
    case REPL_STEP_RDB_ONLY:
        put_replconf(p, "rdb-only", "1");
        break;
    case REPL_STEP_RDB_FILTER:
        put_replconf(p, "rdb-filter-only", p->rdb_filter);
        break;
    case REPL_STEP_CAPA:
        put_capa(p);
        break;
    case REPL_STEP_VERSION:
        put_replconf(p, "version", p->version);
        break;
    case REPL_STEP_PSYNC:
        put_psync(p);
        break;
    default:
        repl_psync_put(p, (const char *const[]){"SYNC", NULL});
        break;
    }
}

static void go_on(struct repl_psync *p)
{
    do
        p->step++;
    while (!is_wanted(p, p->step));
    send_step(p);
}

void repl_greet_begin(struct repl_psync *p)
{
    p->step = REPL_STEP_PING;
    send_step(p);
}

/* The part of an answer that may be reported. */
static struct rd_slice tellable(const struct repl_psync *p, struct rd_slice line)
{
    return p->step == REPL_STEP_AUTH ? repl_refuse_discreet(line, rd_buf_slice(&p->password))
                                     : line;
}

static enum repl_event_kind strange(struct repl_psync *p, struct rd_slice line,
                                    struct repl_event *ret)
{
    char quoted[100];
    ret->text = tellable(p, line);
    rd_err_quote(quoted, sizeof quoted, tellable(p, line));
    return repl_psync_fail(p, REPL_PROTOCOL, RD_ERR_PROTOCOL, rd_src_offset(p->src),
                           "unexpected answer to %s: %s", repl_step_word(p->step), quoted);
}

/* The word at *pos, and *pos after the blank that follows it. */
static struct rd_slice word_at(struct rd_slice line, size_t *pos)
{
    struct rd_slice rest = rd_slice(line.ptr + *pos, line.len - *pos);
    const uint8_t *blank = rest.len > 0 ? memchr(rest.ptr, ' ', rest.len) : NULL;
    size_t len = blank != NULL ? (size_t)(blank - rest.ptr) : rest.len;
    *pos += len + (blank != NULL ? 1 : 0);
    return rd_slice(rest.ptr, len);
}

static enum repl_event_kind full(struct repl_psync *p, struct rd_slice line, size_t pos,
                                 struct repl_event *ret)
{
    int64_t offset;
    struct repl_replid id;
    struct rd_slice name = word_at(line, &pos), number = word_at(line, &pos);
    if (pos != line.len || !repl_replid_get(name, &id) || !rd_num_get_i64(number, &offset) ||
        offset < 0)
        return strange(p, line, ret);
    p->replid = id;
    p->has_place = false;
    repl_stream_init(&p->stream, (uint64_t)offset, 0, false);
    p->step = REPL_STEP_HEADER;
    ret->replid = id;
    ret->offset = (uint64_t)offset;
    return REPL_FULL;
}

static enum repl_event_kind goes_on(struct repl_psync *p, struct rd_slice line, size_t pos,
                                    struct repl_event *ret)
{
    const struct repl_resume *from = &p->opts.resume;
    struct repl_replid id = from->replid;
    if (!repl_replid_is_set(&id))
        return strange(p, line, ret);
    if (pos != line.len && !repl_replid_get(rd_slice(line.ptr + pos, line.len - pos), &id))
        return strange(p, line, ret);
    ret->changed = !repl_replid_eq(&id, &from->replid);
    ret->replid = p->replid = id;
    ret->offset = p->stream.offset;
    p->step = REPL_STEP_STREAM;
    repl_psync_ack_now(p);
    return REPL_CONTINUE;
}

/* "+FULLRESYNC ID OFFSET" or "+CONTINUE [ID]". */
static enum repl_event_kind psync_granted(struct repl_psync *p, struct rd_slice line,
                                          struct repl_event *ret)
{
    size_t pos = 1;
    struct rd_slice word = word_at(line, &pos);
    if (rd_slice_is(word, "FULLRESYNC"))
        return full(p, line, pos, ret);
    if (rd_slice_is(word, "CONTINUE"))
        return goes_on(p, line, pos, ret);
    return strange(p, line, ret);
}

static bool begins(struct rd_slice line, const char *with)
{
    size_t len = strlen(with);
    return line.len >= len && strncasecmp((const char *)line.ptr, with, len) == 0;
}

/* "-ERR" and words, where newer errors have a code of their own. */
static bool has_no_code(struct rd_slice line)
{
    return begins(line, "-ERR");
}

/* A master that does not know PSYNC replies with -ERR; SYNC may then be tried. */
static bool may_try_sync(struct rd_slice line)
{
    return has_no_code(line) && repl_refuse_class(line) != REPL_AUTH &&
           !begins(line, "-ERR Can't SYNC"); /* NOMASTERLINK, before 4.0 */
}

/* Whether this refusal ends the handshake, and its class. */
static bool is_fatal(const struct repl_psync *p, struct rd_slice line, enum repl_class *ret)
{
    *ret = repl_refuse_class(line);
    switch (p->step) {
    case REPL_STEP_PING: /* without AUTH a master may refuse even this. One that cannot save refuses
                            it, but not its replicas; a user of replicas needs PSYNC, not PING */
        if (begins(line, "-MISCONF") || begins(line, "-NOPERM"))
            return false;
        return *ret != REPL_AUTH || !p->with_password;
    case REPL_STEP_AUTH:
        if (has_no_code(line) || *ret != REPL_RETRY)
            *ret = REPL_AUTH;
        return true;
    case REPL_STEP_PSYNC:
        return p->opts.failover || !may_try_sync(line);
    case REPL_STEP_SYNC:
        return true;
    case REPL_STEP_RDB_FILTER: /* all data instead of a part was not requested */
        *ret = *ret == REPL_AUTH ? REPL_AUTH : REPL_UNSUPPORTED;
        return true;
    default:
        return *ret == REPL_AUTH;
    }
}

static enum repl_event_kind refused(struct repl_psync *p, struct rd_slice line,
                                    struct repl_event *ret)
{
    enum repl_class class;
    ret->text = tellable(p, line);
    if (is_fatal(p, line, &class))
        return repl_refuse(p, class, ret->text);
    go_on(p);
    return REPL_REPLY;
}

static enum repl_event_kind granted(struct repl_psync *p, struct rd_slice line,
                                    struct repl_event *ret)
{
    if (p->step == REPL_STEP_PSYNC)
        return psync_granted(p, line, ret);
    if (p->step == REPL_STEP_SYNC)
        return strange(p, line, ret);
    ret->text = tellable(p, line);
    go_on(p);
    return REPL_REPLY;
}

enum repl_event_kind repl_greet_next(struct repl_psync *p, struct repl_event *ret)
{
    struct rd_slice line;
    size_t whole = 0;
    enum repl_event_kind kind = repl_psync_line(p, &line, &whole);
    if (kind != REPL_REPLY)
        return kind;
    if (line.len == 0) {
        ret->bytes = rd_slice(line.ptr, whole);
        kind = REPL_KEEPALIVE;
    } else if (p->step == REPL_STEP_SYNC && line.ptr[0] == '$') {
        p->synced = true;
        p->has_place = false;
        repl_stream_init(&p->stream, 0, 0, false);
        p->step = REPL_STEP_HEADER; /* where the line is parsed again */
        return REPL_SYNC;
    } else if (line.ptr[0] == '-') {
        kind = refused(p, line, ret);
    } else if (line.ptr[0] == '+') {
        kind = granted(p, line, ret);
    } else {
        kind = strange(p, line, ret);
    }
    repl_psync_take_line(p, whole);
    return kind;
}
