/* target.c - the keys as they are now, and the transactions that change them.
 *
 * A key is watched, read with DUMP, merged, and changed in one transaction. If it was written in
 * between, the transaction does nothing, and the key is read again.
 */
#include "tools/undo/undo.h"

#include "base/num.h"
#include "base/resp.h"
#include "history/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* For a slot that is being moved here. */
static bool ask_first(struct undo *u, struct client_peer_reply *reply, struct rd_err *err)
{
    return !u->asking || client_peer_ask(u->peer_now, "ASKING", reply, err);
}

static bool ask_key(struct undo *u, const char *command, struct rd_slice name,
                    struct client_peer_reply *reply, struct rd_err *err)
{
    const struct rd_slice argv[] = {rd_slice_str(command), name};
    return ask_first(u, reply, err) && client_peer_ask_argv(u->peer_now, argv, 2, reply, err);
}

/* PEXPIRETIME is of 7.0; before it, the time to live that is left is exact to a few milliseconds.
 */
static bool read_expiry(struct undo *u, struct rd_slice name, int64_t *ret, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err ignored = {0};
    bool ok = ask_key(u, "PEXPIRETIME", name, &reply, &ignored);
    *ret = ok && reply.items[0].integer >= 0 ? reply.items[0].integer : ENGINE_NO_EXPIRE;
    bool is_moved = ignored.reason.id == RESP_REASON_MOVED || ignored.reason.id == RESP_REASON_ASK;
    if (!ok && ignored.code == RD_ERR_PROTOCOL && ignored.sys == 0 && !is_moved) {
        ok = ask_key(u, "PTTL", name, &reply, err);
        if (ok && reply.items[0].integer >= 0)
            *ret = cli_now_ms() + reply.items[0].integer;
    } else if (!ok) {
        rd_err_adopt(err, &ignored);
    }
    client_peer_reply_done(&reply);
    return ok;
}

/* ---- the key as it is ---- */

static bool load_dump(struct undo *u, const struct undo_key *key, struct rd_slice dump,
                      int64_t expire_ms, struct rd_err *err)
{
    char text[RD_NUM_I64_MAX];
    struct history_answer answer;
    const struct rd_slice expire = {
        (const uint8_t *)text, rd_num_put_i64(text, expire_ms == ENGINE_NO_EXPIRE ? 0 : expire_ms)};
    const struct rd_slice argv[] = {
        rd_slice_str("RESTORE"), key->name, expire, dump, rd_slice_str("REPLACE"),
        rd_slice_str("ABSTTL")};
    if (!history_ask(&answer, &u->scratch, key->db, sizeof argv / sizeof *argv, argv, err))
        return false;
    history_answer_done(&answer);
    return true;
}

static bool read_now(struct undo *u, const struct undo_key *key, struct history_mirror **ret,
                     struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    int64_t expire_ms = ENGINE_NO_EXPIRE;
    *ret = NULL;
    rd_buf_reset(&u->dump_now);
    bool ok =
        undo_nodes_choose(u, key->db, key->name, err) && ask_key(u, "DUMP", key->name, &reply, err);
    if (ok && !reply.items[0].null) {
        struct rd_slice dump = reply.items[0].text;
        ok = (rd_buf_add(&u->dump_now, dump.ptr, dump.len) || rd_err_nomem(err, dump.len)) &&
             read_expiry(u, key->name, &expire_ms, err) &&
             load_dump(u, key, rd_buf_slice(&u->dump_now), expire_ms, err);
        if (ok)
            *ret = history_mirror_read(&u->scratch, key->db, key->name, err);
        ok = ok && *ret != NULL;
        rebuild_data_drop(&u->scratch, key->db, key->name);
    }
    client_peer_reply_done(&reply);
    return ok;
}

/* Without a server it is what it was at the end of what is recorded. */
static bool read_end(struct undo *u, const struct undo_key *key, struct history_mirror **ret,
                     struct rd_err *err)
{
    const struct history_mirror *m = history_mirrors_find(&u->mirrors, key->db, key->name);
    bool is_there = m != NULL && m->state == HISTORY_PRESENT;
    *ret = is_there ? history_mirror_copy(m, err) : NULL;
    return !is_there || *ret != NULL;
}

static bool plan(struct undo *u, const struct undo_key *key, struct history_merge *ret,
                 struct history_mirror **ret_now, struct rd_err *err)
{
    if (!(u->peer_now != NULL ? read_now : read_end)(u, key, ret_now, err))
        return false;
    ret->before = key->before;
    ret->after = key->after;
    ret->now = *ret_now;
    ret->dump_before = rd_buf_slice(&key->dump_before);
    ret->dump_now = rd_buf_slice(&u->dump_now);
    ret->prefer = u->theirs ? HISTORY_PREFER_BEFORE
                  : u->ours ? HISTORY_PREFER_NOW
                            : HISTORY_PREFER_NONE;
    return history_merge(ret, err);
}

bool undo_target_plan(struct undo *u, const struct undo_key *key, struct history_merge *ret,
                      struct history_mirror **ret_now, struct rd_err *err)
{
    struct rd_err why = {0};
    u->asking = false;
    for (unsigned i = 0; i < UNDO_TRIES; i++) {
        rd_err_reset(&why);
        if (plan(u, key, ret, ret_now, &why))
            return true;
        if (!undo_nodes_follow(u, &why, i))
            break;
    }
    rd_err_adopt(err, &why);
    return false;
}

/* ---- what takes it back ---- */

static bool save_all(struct undo *u, const void *bytes, size_t len, struct rd_err *err)
{
    const uint8_t *p = bytes;
    while (len > 0) {
        ssize_t n = pwrite(u->save_fd, p, len, (off_t)u->save_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rd_err_sys(err, n < 0 ? errno : EIO, "cannot write %.100s", u->save);
        p += n;
        len -= (size_t)n;
        u->save_len += (uint64_t)n;
    }
    return true;
}

static bool put_select(struct rd_sink *sink, unsigned db)
{
    char text[RD_NUM_I64_MAX];
    const struct rd_slice argv[] = {rd_slice_str("SELECT"),
                                    {(const uint8_t *)text, rd_num_put_i64(text, db)}};
    return rd_resp_put_command(sink, argv, 2);
}

static bool put_back(struct undo *u, const struct undo_key *key,
                     const struct history_commands *back, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_sink *sink;
    bool select = u->save_db != key->db;
    if (u->cluster)
        return ((!select || rd_buf_printf(ret, "SELECT %u\n", key->db)) &&
                undo_put_lines(back, ret)) ||
               rd_err_nomem(err, back->bytes.len);
    if (!rd_sink_open_buf(&sink, ret, NULL, err))
        return false;
    if (select)
        put_select(sink, key->db);
    rd_sink_write(sink, back->bytes.ptr, back->bytes.len);
    return rd_sink_close(sink, err);
}

/* Before the key is changed: nothing is done that cannot be taken back. */
static bool save_back(struct undo *u, const struct undo_key *key,
                      const struct history_commands *back, struct rd_err *err)
{
    struct rd_buf bytes = {0};
    bool ok = put_back(u, key, back, &bytes, err) && save_all(u, bytes.ptr, bytes.len, err);
    u->save_db = key->db;
    rd_buf_done(&bytes);
    return ok;
}

static bool forget_back(struct undo *u, uint64_t len, struct rd_err *err)
{
    u->save_len = len;
    u->save_db = UINT32_MAX;
    return ftruncate(u->save_fd, (off_t)len) == 0 ||
           rd_err_sys(err, errno, "cannot cut %.100s", u->save);
}

/* ---- the transaction ---- */

enum outcome { DONE, CHANGED, FAILED };

static bool read_queued(struct undo *u, uint64_t n, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err first = {0};
    bool ok = true;
    for (uint64_t i = 0; i < n + 1; i++) { /* MULTI, then each command */
        struct rd_err one = {0};
        if (!client_peer_read_reply(u->peer_now, &reply, &one)) {
            rd_err_adopt(&first, &one);
            ok = false;
        }
    }
    client_peer_reply_done(&reply);
    if (!ok)
        rd_err_adopt(err, &first);
    return ok;
}

static bool first_error(const struct client_peer_reply *reply, struct rd_err *err)
{
    for (size_t i = 1; i < reply->n; i++)
        if (reply->items[i].type == RESP_ERROR)
            return rd_err_set(
                err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%.*s",
                (int)(reply->items[i].text.len < 150 ? reply->items[i].text.len : 150),
                (const char *)reply->items[i].text.ptr);
    return true;
}

/* *ret_partly: a command of the transaction failed, and others did not. */
static enum outcome execute(struct undo *u, const struct history_commands *commands,
                            bool *ret_partly, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    enum outcome outcome = FAILED;
    bool ok = ask_first(u, &reply, err) && client_peer_send_line(u->peer_now, "MULTI", err) &&
              client_peer_send_bytes(u->peer_now, rd_buf_slice(&commands->bytes), err) &&
              client_peer_send_line(u->peer_now, "EXEC", err) &&
              client_peer_flush(u->peer_now, err);
    bool queued = ok && read_queued(u, commands->n, err);
    struct rd_err last = {0};
    ok = ok && client_peer_read_reply(u->peer_now, &reply, queued ? err : &last);
    if (ok && queued)
        outcome = reply.items[0].null ? CHANGED : first_error(&reply, err) ? DONE : FAILED;
    *ret_partly = ok && queued && outcome == FAILED;
    client_peer_reply_done(&reply);
    return outcome;
}

static bool watch(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = undo_nodes_choose(u, key->db, key->name, err) &&
              ask_key(u, "WATCH", key->name, &reply, err);
    client_peer_reply_done(&reply);
    return ok;
}

static bool unwatch(struct undo *u, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(u->peer_now, "UNWATCH", &reply, err);
    client_peer_reply_done(&reply);
    return ok;
}

static enum outcome try(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    struct history_merge merge = {.ctx = u};
    struct history_mirror *now = NULL;
    enum outcome outcome = FAILED;
    uint64_t saved = u->save_len;
    bool ok = watch(u, key, err) && plan(u, key, &merge, &now, err);
    if (ok && (merge.redo.n == 0 || merge.conflicts > 0)) {
        outcome = unwatch(u, err) ? DONE : FAILED;
        if (merge.conflicts > 0)
            undo_report_refused(u, key, "it was written while undo ran, and is a conflict now");
    } else if (ok && save_back(u, key, &merge.back, err)) {
        bool partly = false;
        outcome = execute(u, &merge.redo, &partly, err);
        u->applied += outcome == DONE;
        if (outcome != DONE && !partly && !forget_back(u, saved, err))
            outcome = FAILED;
    }
    history_mirror_free(now);
    history_merge_done(&merge);
    return outcome;
}

/* A refused command concerns this key only, unless the connection is gone. */
static bool apply_to_server(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    struct rd_err why = {0};
    u->asking = false;
    for (unsigned i = 0; i < UNDO_TRIES; i++) {
        rd_err_reset(&why);
        enum outcome outcome = try(u, key, &why);
        if (outcome == DONE)
            return true;
        if (outcome == FAILED && undo_nodes_follow(u, &why, i))
            continue;
        if (outcome == FAILED) {
            if (why.reason.id == 0 || why.code != RD_ERR_PROTOCOL) {
                rd_err_adopt(err, &why);
                return false;
            }
            undo_report_refused(u, key, why.text);
            return true;
        }
    }
    undo_report_refused(u, key,
                        why.code != RD_ERR_OK
                            ? "the servers of the cluster send each other the key"
                            : "it is written so often that it could not be changed");
    return true;
}

static bool apply_to_file(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    struct history_merge merge = {.ctx = u};
    struct history_mirror *now = NULL;
    bool ok = plan(u, key, &merge, &now, err);
    if (ok && merge.redo.n > 0) {
        if (u->peer_db != key->db)
            put_select(u->out, key->db);
        u->peer_db = key->db;
        rd_sink_write(u->out, merge.redo.bytes.ptr, merge.redo.bytes.len);
        u->applied++;
    }
    history_mirror_free(now);
    history_merge_done(&merge);
    return ok;
}

bool undo_target_apply(struct undo *u, const struct undo_key *key, struct rd_err *err)
{
    return (u->peer_now != NULL ? apply_to_server : apply_to_file)(u, key, err);
}

/* ---- begin and end ---- */

static bool open_server(struct undo *u, struct rd_err *err)
{
    if (!peer_target_find(&u->server, &u->peer, u->to, err) || !undo_nodes_open(u, err))
        return false;
    if (u->cluster && u->save == u->save_name) /* redis-cli --pipe does not follow a cluster */
        snprintf(u->save_name, sizeof u->save_name, "undo-%lld.txt", (long long)u->cli->began_ms);
    rebuild_data_begin(&u->scratch, u->cli->began_ms * 1000);
    u->has_scratch = true;
    return true;
}

bool undo_target_open(struct undo *u, struct rd_err *err)
{
    u->save_fd = -1;
    u->peer_db = u->save_db = UINT32_MAX;
    if (client_target_is_url(u->to))
        return open_server(u, err);
    return cli_check_out(u->cli, u->to, u->force, err);
}

/* Before the first change. */
bool undo_target_begin(struct undo *u, struct rd_err *err)
{
    if (u->peer_now == NULL)
        return cli_open_out(u->cli, u->to, u->force, false, &u->out, err);
    u->save_fd =
        open(u->save, O_WRONLY | O_CREAT | O_CLOEXEC | (u->force ? O_TRUNC : O_EXCL), 0600);
    return u->save_fd >= 0 || rd_err_sys(err, errno, "cannot create %.100s", u->save);
}

bool undo_target_end(struct undo *u, struct rd_err *err)
{
    bool ok = u->save_fd < 0 || fsync(u->save_fd) == 0 ||
              rd_err_sys(err, errno, "cannot sync %.100s", u->save);
    struct rd_sink *out = u->out;
    u->out = NULL;
    return ok && (out == NULL || rd_sink_close(out, err));
}

void undo_target_done(struct undo *u)
{
    rd_sink_abort(u->out);
    if (u->save_fd >= 0)
        close(u->save_fd);
    undo_nodes_done(u);
    rd_buf_done(&u->dump_now);
    if (u->has_scratch)
        rebuild_data_end(&u->scratch);
}
