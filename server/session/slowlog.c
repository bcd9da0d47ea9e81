#include "server/session/slowlog.h"

#include "engine/mem.h"
#include "server/session/dispatch/dispatch.h"
#include "server/session/redact.h"
#include "server/session/dispatch/subcommand.h"

#include <stdio.h>

enum { ARGS_MAX = 32, ARG_BYTES = 128, NOTE_MAX = 48, SHOWN = 10 };

struct slowlog_entry {
    struct slowlog_entry *older, *newer;
    uint64_t id;
    int64_t at_s;
    uint64_t us;
    size_t argc;
    struct place {
        size_t off, len;
    } argv[ARGS_MAX], peer, name; /* positions in bytes, which move while they grow */
    struct rd_buf bytes;
};

struct slowlog {
    struct slowlog_entry *newest, *oldest;
    uint64_t n;
    uint64_t next_id;
};

struct slowlog *slowlog_new(void)
{
    struct slowlog *log = engine_scratch_alloc(sizeof *log);
    *log = (struct slowlog){0};
    return log;
}

void slowlog_entry_free(struct slowlog_entry *entry)
{
    if (entry == NULL)
        return;
    rd_buf_done(&entry->bytes);
    engine_scratch_free(entry);
}

static void drop_oldest(struct slowlog *log)
{
    struct slowlog_entry *entry = log->oldest;
    log->oldest = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &log->newest) = NULL;
    log->n--;
    slowlog_entry_free(entry);
}

void slowlog_free(struct slowlog *log)
{
    if (log == NULL)
        return;
    while (log->oldest != NULL)
        drop_oldest(log);
    engine_scratch_free(log);
}

static struct place keep_bytes(struct slowlog_entry *entry, struct rd_slice bytes)
{
    size_t at = entry->bytes.len;
    rd_buf_add(&entry->bytes, bytes.ptr, bytes.len);
    return (struct place){.off = at, .len = entry->bytes.len - at};
}

static struct place keep_cut(struct slowlog_entry *entry, struct rd_slice arg)
{
    size_t at = entry->bytes.len;
    if (arg.len <= ARG_BYTES)
        return keep_bytes(entry, arg);
    rd_buf_add(&entry->bytes, arg.ptr, ARG_BYTES);
    rd_buf_printf(&entry->bytes, "... (%zu more bytes)", arg.len - ARG_BYTES);
    return (struct place){.off = at, .len = entry->bytes.len - at};
}

static void keep_args(struct slowlog_entry *entry, const struct engine_command *command,
                      size_t argc, const struct rd_slice *argv)
{
    bool secrets = command != NULL && redact_may_have(command);
    entry->argc = argc < ARGS_MAX ? argc : ARGS_MAX;
    for (size_t i = 0; i < entry->argc; i++) {
        if (argc > ARGS_MAX && i == ARGS_MAX - 1) {
            char note[NOTE_MAX];
            snprintf(note, sizeof note, "... (%zu more arguments)", argc - ARGS_MAX + 1);
            entry->argv[i] = keep_bytes(entry, rd_slice_str(note));
        } else if (secrets && redact_is_secret(command, argc, argv, i)) {
            entry->argv[i] = keep_bytes(entry, rd_slice_str(REDACTED));
        } else {
            entry->argv[i] = keep_cut(entry, argv[i]);
        }
    }
}

static void trim(struct slowlog *log, int64_t max)
{
    while (log->n > (max > 0 ? (uint64_t)max : 0))
        drop_oldest(log);
}

struct slowlog_entry *slowlog_entry(const struct engine_session *s, size_t argc,
                                    const struct rd_slice *argv)
{
    const struct client *c = s->ctx;
    struct slowlog_entry *entry = engine_scratch_alloc(sizeof *entry);
    *entry = (struct slowlog_entry){0};
    keep_args(entry, dispatch_find(c->sessions, argv, argc), argc, argv);
    if (s->in_script) { /* its commands come from a client without address and name */
        entry->peer = keep_bytes(entry, rd_slice_str("?:0"));
        return entry;
    }
    entry->peer = keep_bytes(entry, rd_slice_str(c->peer));
    entry->name = keep_bytes(entry, rd_buf_slice(&c->name));
    return entry;
}

void slowlog_add(struct sessions *sessions, struct slowlog_entry *entry, uint64_t us)
{
    struct slowlog *log = sessions->slowlog;
    int64_t limit = sessions->loop->settings.slowlog_log_slower_than;
    if (limit < 0 || us < (uint64_t)limit) {
        slowlog_entry_free(entry);
        return;
    }
    entry->id = log->next_id++;
    entry->at_s = sessions->loop->now_us / 1000000;
    entry->us = us;
    entry->older = log->newest;
    *(log->newest != NULL ? &log->newest->newer : &log->oldest) = entry;
    log->newest = entry;
    log->n++;
    trim(log, sessions->loop->settings.slowlog_max_len);
}

/* ---- SLOWLOG ---- */

static void reply_place(struct engine_reply *reply, const struct slowlog_entry *entry,
                        struct place place)
{
    engine_reply_bulk(reply, rd_slice(entry->bytes.ptr + place.off, place.len));
}

static void reply_entry(struct engine_reply *reply, const struct slowlog_entry *entry)
{
    engine_reply_array(reply, 6);
    engine_reply_int(reply, (int64_t)entry->id);
    engine_reply_int(reply, entry->at_s);
    engine_reply_int(reply, (int64_t)entry->us);
    engine_reply_array(reply, entry->argc);
    for (size_t i = 0; i < entry->argc; i++)
        reply_place(reply, entry, entry->argv[i]);
    reply_place(reply, entry, entry->peer);
    reply_place(reply, entry, entry->name);
}

static void sub_get(struct dispatch_call *call)
{
    const struct slowlog *log = call->sessions->slowlog;
    int64_t count = SHOWN;
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 3 && !dispatch_arg_i64(call, call->argv[2], -1, INT64_MAX, &count,
                                             "ERR count should be greater than or equal to -1"))
        return;
    uint64_t n = count == -1 || (uint64_t)count > log->n ? log->n : (uint64_t)count;
    const struct slowlog_entry *entry = log->newest;
    engine_reply_array(call->reply, n);
    for (uint64_t i = 0; i < n; i++, entry = entry->older)
        reply_entry(call->reply, entry);
}

static void sub_len(struct dispatch_call *call)
{
    engine_reply_int(call->reply, (int64_t)call->sessions->slowlog->n);
}

static void sub_reset(struct dispatch_call *call)
{
    trim(call->sessions->slowlog, 0);
    engine_reply_ok(call->reply);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "GET [<count>]",
        "    Return the newest entries (10 by default; -1: all): ID, Unix time, microseconds,",
        "    arguments, client address and client name.",
        "LEN",
        "    Count the entries.",
        "RESET",
        "    Delete all entries.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"get", sub_get},
    {"len", sub_len},
    {"reset", sub_reset},
    {"help", sub_help},
};

void server_cmd_slowlog(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
