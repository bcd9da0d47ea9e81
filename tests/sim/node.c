#include "tests/sim/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc64.h"
#include "base/mem.h"
#include "engine/db.h"
#include "engine/digest.h"
#include "engine/snapshot.h"
#include "tests/support/chance.h"

enum { DATABASES = 3, RETRY_MS = 1000, SAVE_MS = 400, LOAD_MS = 400, AUX = 4, TEXT = 64 };

/* ---- chance and failure ---- */

/* splitmix64 */
uint64_t world_random(struct world *w, uint64_t below)
{
    if (w->input_len > 0) {
        uint64_t value = *w->input++;
        if (--w->input_len > 0 && below > 256) {
            value = value << 8 | *w->input++;
            w->input_len--;
        }
        return value % below;
    }
    return chance_below(&w->random, below);
}

void world_fail(struct world *w, const char *fmt, ...)
{
    va_list args;
    if (w->failure[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(w->failure, sizeof w->failure, fmt, args);
    va_end(args);
}

static void must(struct world *w, bool ok, const char *what)
{
    if (!ok)
        world_fail(w, "%s", what);
}

static struct repl_replid fresh_id(struct world *w)
{
    struct repl_replid id = {{0}};
    for (int i = 0; i < REPL_REPLID_LEN; i++)
        id.hex[i] = "0123456789abcdef"[world_random(w, 16)];
    return id;
}

static struct engine_env env_of(const struct node *n)
{
    return (struct engine_env){.now_us = n->world->now_ms * 1000};
}

/* ---- the stream, as it really was ---- */

static void add_mark(struct node *n)
{
    if (n->n_marks == n->cap_marks) {
        n->cap_marks = n->cap_marks * 2 + 64;
        n->marks = rd_realloc(n->marks, n->cap_marks * sizeof *n->marks);
    }
    n->marks[n->n_marks++] = (struct mark){n->m->offset, n->crc};
}

/* Adds what was appended since the last call. */
static void note_stream(struct node *n)
{
    struct rd_slice s;
    while ((s = repl_reader_bytes(&n->tail)).len > 0) {
        n->crc = rd_crc64(n->crc, s.ptr, s.len);
        repl_reader_take(&n->tail, s.len);
    }
    add_mark(n);
}

/* The sum of the stream up to an offset. False: that is not known any more. */
static bool crc_at(struct node *n, uint64_t offset, uint64_t *ret)
{
    struct repl_reader r = {0};
    struct rd_slice s;
    size_t i = n->n_marks;
    while (i > 0 && n->marks[i - 1].offset > offset)
        i--;
    if (i == 0 || offset > n->m->offset)
        return false;
    *ret = n->marks[i - 1].crc;
    uint64_t at = n->marks[i - 1].offset;
    if (at == offset)
        return true;
    if (!repl_reader_open(&r, n->m->backlog, at))
        return false;
    while (at < offset && (s = repl_reader_bytes(&r)).len > 0) {
        size_t len = s.len < offset - at ? s.len : (size_t)(offset - at);
        *ret = rd_crc64(*ret, s.ptr, len);
        repl_reader_take(&r, len);
        at += len;
    }
    repl_reader_close(&r);
    return true;
}

/* The history of the node is another one from here on. */
static void restart_stream(struct node *n, uint64_t crc)
{
    n->crc = crc;
    n->n_marks = 0;
    must(n->world, repl_reader_open(&n->tail, n->m->backlog, n->m->offset), "the tail");
    add_mark(n);
}

/* ---- data ---- */

static void new_engine(struct node *n)
{
    struct engine_config config;
    engine_config_init(&config);
    config.databases = DATABASES;
    n->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&n->local, n->engine, ENGINE_CLIENT);
    engine_session_init(&n->stream, n->engine, ENGINE_MASTER);
}

static void drop_engine(struct node *n)
{
    engine_session_done(&n->local);
    engine_session_done(&n->stream);
    engine_delete(n->engine);
}

static void put_number(char text[TEXT], struct engine_aux *aux, const char *name, uint64_t value)
{
    snprintf(text, TEXT, "%llu", (unsigned long long)value);
    *aux = (struct engine_aux){rd_slice_str(name), rd_slice_str(text)};
}

static void save(struct node *n, struct rd_buf *ret)
{
    struct rd_sink *sink;
    char text[AUX][TEXT];
    struct engine_aux aux[AUX];
    bool known = n->follows == NULL || n->has_place;
    unsigned db = n->follows != NULL ? n->db : n->m->db_known ? n->m->db : 0;
    put_number(text[0], &aux[0], "repl-stream-db", db);
    put_number(text[1], &aux[1], "repl-offset", n->m->offset);
    put_number(text[2], &aux[2], "sim-crc", n->crc);
    aux[3] = (struct engine_aux){rd_slice_str("repl-id"), rd_slice_str(n->m->id.hex)};
    const struct engine_save_opts opts = {
        .keep_expired = true, .now_ms = n->world->now_ms, .aux = aux, .n_aux = known ? AUX : 0};
    rd_buf_reset(ret);
    rd_sink_open_buf(&sink, ret, NULL, NULL);
    must(n->world, engine_save(n->engine, sink, &opts, NULL), "saving");
    must(n->world, rd_sink_close(sink, NULL), "saving");
}

struct place {
    struct repl_replid id;
    uint64_t offset, db, crc;
};

static void on_aux(void *ctx, struct rd_slice name, struct rd_slice value)
{
    struct place *place = ctx;
    char text[TEXT];
    snprintf(text, sizeof text, "%.*s", (int)value.len, (const char *)value.ptr);
    if (rd_slice_is(name, "repl-id"))
        repl_replid_get(value, &place->id);
    else if (rd_slice_is(name, "repl-offset"))
        place->offset = strtoull(text, NULL, 10);
    else if (rd_slice_is(name, "repl-stream-db"))
        place->db = strtoull(text, NULL, 10);
    else if (rd_slice_is(name, "sim-crc"))
        place->crc = strtoull(text, NULL, 10);
}

static void load(struct node *n, const struct rd_buf *image, struct place *place)
{
    struct rd_src *src;
    struct rd_err err = {0};
    struct engine_env env = env_of(n);
    const struct engine_load_opts opts = {
        .keep_expired = true, .no_aux = true, .on_aux = on_aux, .ctx = place};
    *place = (struct place){.offset = 0};
    drop_engine(n);
    new_engine(n);
    rd_src_open_memory(&src, rd_buf_slice(image), NULL, NULL);
    if (!engine_load(n->engine, src, &opts, &env, NULL, &err))
        world_fail(n->world, "loading: %s", err.text);
    rd_src_close(src);
}

static void empty(struct node *n)
{
    drop_engine(n);
    new_engine(n);
}

/* ---- wires ---- */

static void disconnect_peers(struct node *n)
{
    for (struct wire *w = n->world->wires, *next; w != NULL; w = next) {
        next = w->next;
        if (w->master == n)
            wire_cut(w, true);
    }
}

static void free_wire(struct wire *w)
{
    struct wire **at = &w->master->world->wires;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    repl_peer_done(&w->peer);
    rd_resp_reader_free(w->reader);
    rd_src_close(w->src);
    rd_buf_done(&w->down);
    rd_buf_done(&w->up);
    rd_buf_done(&w->out);
    rd_buf_done(&w->file);
    rd_free(w);
}

static void leave_link(struct node *n)
{
    bool broken = n->loading && !n->beside;
    n->loading = false;
    if (broken) /* half of a data set is none */
        empty(n);
    n->link = NULL;
    repl_psync_free(n->psync);
    n->psync = NULL;
    rd_buf_reset(&n->held);
    rd_buf_reset(&n->incoming);
    engine_session_discard(&n->stream);
    n->retry_ms = n->world->now_ms + (int64_t)world_random(n->world, RETRY_MS);
}

void wire_cut(struct wire *w, bool both)
{
    struct node *replica = w->replica;
    w->replica = NULL;
    if (replica != NULL)
        leave_link(replica);
    if (both)
        free_wire(w);
}

static void connect_node(struct node *n)
{
    struct wire *w = rd_calloc(1, sizeof *w);
    const struct rd_resp_opts resp = RD_RESP_OPTS(.client = true);
    struct repl_psync_opts opts = REPL_PSYNC_OPTS(.no_eof = world_random(n->world, 2) != 0);
    if (n->has_place)
        opts.resume = (struct repl_resume){n->m->id, n->m->offset, n->db, false};
    w->master = n->follows;
    w->replica = n;
    w->next = n->world->wires;
    n->world->wires = w;
    repl_peer_init(&w->peer, n->follows->m, &w->out);
    w->peer.ctx = w;
    must(n->world,
         rd_src_open_push(&w->src, NULL, NULL) &&
             rd_resp_reader_new(&w->reader, w->src, &resp, NULL) &&
             repl_psync_new(&n->psync, &opts, NULL),
         "memory");
    n->link = w;
}

/* ---- the replica ---- */

static void apply(struct node *n, const struct repl_event *ev)
{
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {.off = true};
    struct engine_env env = env_of(n);
    if (ev->place.kind != REPL_PING && ev->place.kind != REPL_GETACK) {
        engine_apply(n->engine, &n->stream, ev->command.argc, ev->command.argv, &env, &reply, &fx);
        must(n->world, !reply.error, "a command of the stream failed");
    }
    engine_reply_done(&reply);
    engine_effects_done(&fx);
}

static void pass_on(struct node *n, struct rd_slice bytes, bool open)
{
    rd_buf_add(&n->held, bytes.ptr, bytes.len);
    if (open)
        return;
    must(n->world, repl_master_pass(n->m, rd_buf_slice(&n->held)), "memory");
    rd_buf_reset(&n->held);
    n->db = n->stream.db;
    note_stream(n);
}

static void on_continue(struct node *n, const struct repl_event *ev)
{
    n->world->partial++;
    if (ev->changed) {
        repl_master_rename(n->m, &ev->replid);
        disconnect_peers(n);
    }
    n->stream.db = n->db;
}

static void finish_load(struct node *n)
{
    struct place place;
    struct repl_resume at;
    if (n->beside)
        disconnect_peers(n);
    load(n, &n->incoming, &place);
    repl_psync_set_db(n->psync, place.db);
    must(n->world, repl_psync_place(n->psync, &at), "a place after a snapshot");
    repl_reader_close(&n->tail);
    must(n->world, repl_master_become(n->m, &at.replid, at.offset), "memory");
    must(n->world, place.offset == at.offset, "the offset of a snapshot");
    restart_stream(n, place.crc);
    n->stream.db = n->db = (unsigned)place.db;
    n->has_place = true;
    n->loading = false;
    if (n->durable)
        node_save(n);
}

static void begin_load(struct node *n)
{
    n->beside = world_random(n->world, 3) == 0;
    if (!n->beside) {
        n->has_place = false;
        disconnect_peers(n);
        empty(n);
    }
    n->loading = true;
    n->loaded_ms = n->world->now_ms + (int64_t)world_random(n->world, LOAD_MS);
}

static void on_event(struct node *n, const struct repl_event *ev)
{
    switch (ev->kind) {
    case REPL_FULL:
        n->full_id = ev->replid;
        rd_buf_reset(&n->incoming);
        break;
    case REPL_CONTINUE:
        on_continue(n, ev);
        break;
    case REPL_PAYLOAD:
        rd_buf_add(&n->incoming, ev->bytes.ptr, ev->bytes.len);
        break;
    case REPL_PAYLOAD_END:
        n->world->full++;
        begin_load(n);
        break;
    case REPL_COMMAND:
        apply(n, ev);
        pass_on(n, ev->bytes, ev->place.in_multi && ev->place.kind != REPL_EXEC);
        break;
    case REPL_KEEPALIVE:
        if (ev->step == REPL_STEP_STREAM)
            pass_on(n, ev->bytes, n->held.len > 0);
        break;
    default:
        break;
    }
}

/* False: the wire is gone. */
static bool take_events(struct node *n)
{
    struct repl_event ev;
    while (!n->loading && repl_psync_next(n->psync, &ev) != REPL_MORE) {
        if (ev.kind == REPL_ERROR) {
            must(n->world, ev.error_class == REPL_RETRY || ev.error_class == REPL_TIMEOUT,
                 ev.err->text);
            wire_cut(n->link, true);
            return false;
        }
        on_event(n, &ev);
    }
    return true;
}

static void send_up(struct node *n)
{
    struct rd_slice out = repl_psync_output(n->psync);
    rd_buf_add(&n->link->up, out.ptr, out.len);
    repl_psync_sent(n->psync, out.len);
}

/* ---- the master ---- */

/* Whether the mark would be found before the end: in the data, or across its end. */
static bool comes_early(struct rd_buf *data, const struct repl_replid *mark)
{
    size_t len = data->len;
    rd_buf_add(data, mark->hex, REPL_MARK_LEN - 1);
    bool early = memmem(data->ptr, data->len, mark->hex, REPL_MARK_LEN) != NULL;
    data->len = len;
    return early;
}

static void make_image(struct node *n)
{
    struct rd_buf data = {0};
    struct repl_payload payload = {.by_mark = n->snapshot.by_mark};
    uint8_t header[REPL_PAYLOAD_HEADER_MAX];
    struct repl_replid mark;
    save(n, &data);
    do { /* a fuzzer that plays chance finds marks that the snapshot contains */
        mark = fresh_id(n->world);
    } while (comes_early(&data, &mark));
    memcpy(payload.mark, mark.hex, REPL_MARK_LEN);
    payload.len = data.len;
    rd_buf_reset(&n->image);
    rd_buf_add(&n->image, header, repl_payload_put(&payload, header));
    rd_buf_add(&n->image, data.ptr, data.len);
    if (payload.by_mark)
        rd_buf_add(&n->image, payload.mark, REPL_MARK_LEN);
    rd_buf_done(&data);
}

static void give_file(struct node *n, enum repl_peer_state state)
{
    for (struct wire *w = n->world->wires; w != NULL; w = w->next) {
        if (w->master != n || w->peer.state != state || w->has_file ||
            w->peer.by_mark != n->snapshot.by_mark)
            continue;
        rd_buf_reset(&w->file);
        rd_buf_add(&w->file, n->image.ptr, n->image.len);
        w->file_at = 0;
        w->has_file = true;
    }
}

static bool all_have_it(const struct node *n)
{
    for (const struct wire *w = n->world->wires; w != NULL; w = w->next)
        if (w->master == n && w->peer.state == REPL_PEER_SAVES && w->peer.by_mark && w->has_file)
            return false;
    return true;
}

static void end_snapshot(struct node *n, bool ok)
{
    n->saving = false;
    repl_master_end_snapshot(n->m, n->snapshot.by_mark, ok, n->world->now_ms);
    if (ok && !n->snapshot.by_mark)
        give_file(n, REPL_PEER_PAYLOAD);
    for (struct wire *w = n->world->wires, *next; w != NULL; w = next) {
        next = w->next;
        if (w->master == n && w->peer.state == REPL_PEER_FAILS)
            wire_cut(w, true);
    }
}

static void snapshots(struct node *n)
{
    const struct repl_snapshot_policy how = {.diskless = n->index % 2 == 0, .delay_ms = 100};
    if (n->saving && n->snapshot.by_mark) {
        if (all_have_it(n) || world_random(n->world, 100) == 0)
            end_snapshot(n, all_have_it(n));
    } else if (n->saving && n->world->now_ms >= n->saved_ms) {
        end_snapshot(n, world_random(n->world, 20) != 0);
    } else if (!n->saving && repl_master_due(n->m, &how, n->world->now_ms, &n->snapshot)) {
        n->saving = true;
        n->saved_ms = n->world->now_ms + (int64_t)world_random(n->world, SAVE_MS);
        repl_master_begin_snapshot(n->m, &n->snapshot);
        make_image(n);
        if (n->snapshot.by_mark)
            give_file(n, REPL_PEER_SAVES);
    }
}

/* What a server cannot know: whether the replica really has a part of this history. */
static void check_verdict(struct wire *w, enum repl_verdict verdict, struct rd_slice id,
                          int64_t wanted)
{
    struct node *n = w->master;
    const struct node *replica = w->replica;
    struct repl_replid asked;
    if (replica == NULL || wanted <= 0)
        return;
    uint64_t from = (uint64_t)wanted - 1;
    uint64_t crc;
    if (!crc_at(n, from, &crc) || replica->m->offset != from) {
        if (verdict == REPL_CONTINUES && from < repl_backlog_start(n->m->backlog))
            world_fail(n->world, "node %d continues what it does not hold", n->index);
        return;
    }
    bool same = crc == replica->crc;
    bool held = from >= repl_backlog_start(n->m->backlog);
    bool by_id = repl_replid_get(id, &asked) && repl_replid_eq(&asked, &n->m->id);
    /* A replica of a replica cannot know how long its second id was valid further up. */
    bool known = by_id || (repl_replid_eq(&asked, &n->m->id2) && from <= n->m->second);
    if (verdict == REPL_CONTINUES && !same)
        world_fail(n->world, "node %d continues what node %d does not have, at %llu", n->index,
                   replica->index, (unsigned long long)from);
    if (verdict != REPL_CONTINUES && same && held && known)
        world_fail(n->world, "node %d refuses node %d a gap that it holds, at %llu", n->index,
                   replica->index, (unsigned long long)from);
    n->world->unknown_id += verdict != REPL_CONTINUES && same && held && !known;
}

static void on_psync(struct wire *w, const struct resp_command *cmd)
{
    struct node *n = w->master;
    char text[TEXT];
    if (n->loading || (n->follows != NULL &&
                       (n->psync == NULL || repl_psync_step(n->psync) != REPL_STEP_STREAM))) {
        rd_buf_printf(&w->out, "-NOMASTERLINK not now\r\n");
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)cmd->argv[2].len, (const char *)cmd->argv[2].ptr);
    int64_t wanted = strtoll(text, NULL, 10);
    enum repl_verdict verdict = repl_peer_psync(&w->peer, cmd->argv[1], wanted, n->world->now_ms);
    check_verdict(w, verdict, cmd->argv[1], wanted);
    if (verdict != REPL_CONTINUES && n->saving && !n->snapshot.by_mark)
        repl_peer_join(&w->peer);
}

static void on_command(struct wire *w, const struct resp_command *cmd)
{
    if (rd_slice_is(cmd->argv[0], "PING"))
        rd_buf_printf(&w->out, "+PONG\r\n");
    else if (rd_slice_is(cmd->argv[0], "REPLCONF"))
        repl_peer_replconf(&w->peer, cmd->argc, cmd->argv, w->master->world->now_ms);
    else if (rd_slice_is(cmd->argv[0], "PSYNC"))
        on_psync(w, cmd);
    else
        world_fail(w->master->world, "an unexpected command of a replica");
}

void wire_move_up(struct wire *w, size_t n)
{
    struct resp_command cmd;
    if (w->replica != NULL && w->replica->psync != NULL)
        send_up(w->replica);
    n = n < w->up.len ? n : w->up.len;
    rd_src_push(w->src, rd_slice(w->up.ptr, n));
    memmove(w->up.ptr, w->up.ptr + n, w->up.len - n);
    w->up.len -= n;
    while (rd_resp_reader_next(w->reader, &cmd) == RESP_COMMAND)
        on_command(w, &cmd);
}

/* From the master to the wire: replies, then the snapshot, then the stream. */
static void fill(struct wire *w, size_t n)
{
    struct rd_slice s;
    rd_buf_add(&w->down, w->out.ptr, w->out.len);
    rd_buf_reset(&w->out);
    if (w->has_file) {
        size_t left = w->file.len - w->file_at;
        n = n < left ? n : left;
        rd_buf_add(&w->down, w->file.ptr + w->file_at, n);
        w->file_at += n;
        w->has_file = w->file_at < w->file.len;
        if (!w->has_file && w->peer.state == REPL_PEER_PAYLOAD)
            repl_peer_payload_sent(&w->peer, w->master->world->now_ms);
        return;
    }
    while (n > 0 && (s = repl_peer_stream(&w->peer)).len > 0) {
        size_t now = s.len < n ? s.len : n;
        rd_buf_add(&w->down, s.ptr, now);
        repl_peer_sent(&w->peer, now);
        n -= now;
    }
}

bool wire_move_down(struct wire *w, size_t n)
{
    struct node *replica = w->replica;
    fill(w, n);
    n = n < w->down.len ? n : w->down.len;
    if (replica == NULL || replica->loading || n == 0)
        return false;
    size_t taken = repl_psync_feed(replica->psync, rd_slice(w->down.ptr, n));
    memmove(w->down.ptr, w->down.ptr + taken, w->down.len - taken);
    w->down.len -= taken;
    if (take_events(replica))
        send_up(replica);
    return true;
}

/* ---- life ---- */

void node_init(struct node *n, struct world *w, int index, bool durable)
{
    struct repl_replid id = fresh_id(w);
    *n = (struct node){.world = w, .index = index, .durable = durable};
    new_engine(n);
    must(w,
         repl_master_new(&n->m, &(struct repl_master_opts){.backlog_size = w->backlog_size}, &id,
                         NULL) &&
             repl_master_keep(n->m),
         "memory");
    restart_stream(n, world_random(w, UINT64_MAX)); /* no two histories are the same */
    node_save(n);
}

static void leave_all(struct node *n)
{
    disconnect_peers(n);
    if (n->link != NULL)
        wire_cut(n->link, true);
    repl_reader_close(&n->tail);
    n->saving = false;
}

void node_done(struct node *n)
{
    leave_all(n);
    repl_master_free(n->m);
    drop_engine(n);
    rd_buf_done(&n->held);
    rd_buf_done(&n->incoming);
    rd_buf_done(&n->image);
    rd_buf_done(&n->disk);
    rd_free(n->marks);
}

void node_run(struct node *n, size_t argc, const struct rd_slice *argv)
{
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {0};
    struct engine_env env = env_of(n);
    static const struct rd_slice multi = {(const uint8_t *)"MULTI", 5};
    static const struct rd_slice exec = {(const uint8_t *)"EXEC", 4};
    bool ok = true;
    engine_apply(n->engine, &n->local, argc, argv, &env, &reply, &fx);
    for (size_t i = 0; i < fx.n; i++) {
        const struct engine_effect *effect = &fx.list[i];
        if (i == fx.first && fx.transaction)
            ok &= repl_master_write(n->m, effect->db, 1, &multi);
        ok &= repl_master_write(n->m, effect->db, effect->argc, effect->argv);
        if (i + 1 == fx.n && fx.transaction)
            ok &= repl_master_write(n->m, effect->db, 1, &exec);
    }
    must(n->world, ok, "memory");
    note_stream(n);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
}

void node_follow(struct node *n, struct node *master)
{
    bool was_master = n->follows == NULL;
    if (n->link != NULL)
        wire_cut(n->link, true);
    if (was_master) {
        n->has_place = true;
        n->db = n->m->db_known ? n->m->db : 0;
    }
    n->follows = master;
    engine_session_discard(&n->local);
}

void node_lead(struct node *n)
{
    struct repl_replid id = fresh_id(n->world);
    if (n->link != NULL)
        wire_cut(n->link, true);
    n->follows = NULL;
    repl_master_promote(n->m, &id);
    disconnect_peers(n);
}

void node_forget(struct node *n)
{
    struct repl_replid id = fresh_id(n->world);
    if (n->follows != NULL || n->m->n_peers > 0)
        return;
    repl_reader_close(&n->tail);
    repl_master_drop(n->m, &id);
    must(n->world, repl_master_keep(n->m), "memory");
    restart_stream(n, world_random(n->world, UINT64_MAX));
}

void node_save(struct node *n)
{
    save(n, &n->disk);
}

/* A durable node has a log: all data, and no place. */
void node_restart(struct node *n, bool crash)
{
    struct place place;
    struct repl_replid id = fresh_id(n->world);
    const struct repl_master_opts opts = {.backlog_size = n->world->backlog_size};
    bool whole = (!n->loading || n->beside) && (n->follows == NULL || n->has_place);
    leave_all(n);
    if (!crash || (n->durable && whole))
        node_save(n);
    repl_master_free(n->m);
    must(n->world, repl_master_new(&n->m, &opts, &id, NULL) && repl_master_keep(n->m), "memory");
    load(n, &n->disk, &place);
    n->has_place = false;
    if (repl_replid_is_set(&place.id) && !(crash && n->durable)) {
        bool ok = n->follows != NULL ? repl_master_become(n->m, &place.id, place.offset)
                                     : repl_master_restore(n->m, &place.id, place.offset);
        must(n->world, ok, "memory");
        n->has_place = n->follows != NULL;
        n->db = (unsigned)place.db;
        restart_stream(n, place.crc);
    } else {
        restart_stream(n, world_random(n->world, UINT64_MAX));
    }
    n->retry_ms = 0;
}

void node_tick(struct node *n)
{
    struct world *w = n->world;
    if (n->loading && w->now_ms >= n->loaded_ms) {
        finish_load(n);
        if (!take_events(n))
            return;
    }
    if (n->follows != NULL && n->link == NULL && w->now_ms >= n->retry_ms)
        connect_node(n);
    if (n->psync != NULL) {
        repl_psync_tick(n->psync, (uint64_t)w->now_ms);
        if (take_events(n))
            send_up(n);
    }
    if (n->follows == NULL && world_random(w, 8) == 0) {
        repl_master_ping(n->m);
        if (world_random(w, 3) == 0)
            repl_master_getack(n->m);
        note_stream(n);
    }
    repl_master_keep_alive(n->m);
    snapshots(n);
}

bool node_has_key(struct node *n, const char *key)
{
    return engine_db_find(engine_db(n->engine, 0), rd_slice_str(key)) != NULL;
}

void node_digest(struct node *n, uint8_t ret[20])
{
    engine_digest(n->engine, ret);
}
