/* Follows a real master, for tests that compare what arrives.
 *
 * usage: follow PORT [NAME=VALUE…]
 *
 *     until=N                     ends when this offset is reached; without it, when the master
 * ends data=FILE                   a snapshot of the data: read before, where there is one, and
 * written at the end id= offset= db=             where to resume user= password= port= ip= version=
 * filter= no-eof=1 no-psync2=1 rdb-only=1 sync=1
 *
 * Prints a line for each event but commands and pieces of the snapshot; at the end how many
 * commands came, where it is, and DEBUG DIGEST of what the snapshot and the commands make.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/num.h"
#include "engine/digest.h"
#include "engine/session.h"
#include "engine/snapshot.h"
#include "repl/psync.h"

struct follow {
    int fd;
    struct repl_psync *p;
    struct repl_psync_opts opts;
    uint64_t until;
    const char *data;
    struct engine *engine;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects effects;
    struct rd_buf snapshot;
    uint64_t commands;
    bool ended;
};

static void die(const char *what)
{
    fprintf(stderr, "follow: %s\n", what);
    exit(3);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct engine_env env(void)
{
    return (struct engine_env){.now_us = (int64_t)time(NULL) * 1000000};
}

/* ---- arguments ---- */

static const char *value_of(const char *arg, const char *name)
{
    size_t len = strlen(name);
    return strncmp(arg, name, len) == 0 && arg[len] == '=' ? arg + len + 1 : NULL;
}

static void take_text(const char *arg, const char *name, const char **ret)
{
    const char *value = value_of(arg, name);
    if (value != NULL)
        *ret = value;
}

static void take_number(const char *arg, const char *name, uint64_t *ret)
{
    const char *value = value_of(arg, name);
    if (value != NULL)
        *ret = strtoull(value, NULL, 10);
}

static void take_flag(const char *arg, const char *name, bool *ret)
{
    if (value_of(arg, name) != NULL)
        *ret = true;
}

static void take_argument(struct follow *f, const char *arg)
{
    struct repl_psync_opts *o = &f->opts;
    uint64_t port = o->port;
    const char *id = NULL;
    take_number(arg, "until", &f->until);
    take_text(arg, "data", &f->data);
    take_text(arg, "id", &id);
    take_number(arg, "offset", &o->resume.offset);
    take_number(arg, "db", &o->resume.db);
    take_text(arg, "user", &o->user);
    take_text(arg, "password", &o->password);
    take_number(arg, "port", &port);
    take_text(arg, "ip", &o->ip);
    take_text(arg, "version", &o->version);
    take_text(arg, "filter", &o->rdb_filter);
    take_flag(arg, "no-eof", &o->no_eof);
    take_flag(arg, "no-psync2", &o->no_psync2);
    take_flag(arg, "rdb-only", &o->rdb_only);
    take_flag(arg, "sync", &o->old_sync);
    o->port = (uint16_t)port;
    if (id != NULL && !repl_replid_get(rd_slice_str(id), &o->resume.replid))
        die("id");
}

/* ---- data ---- */

static void new_data(struct follow *f)
{
    struct engine_config config;
    engine_config_init(&config);
    f->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&f->session, f->engine, ENGINE_MASTER);
    f->reply = (struct engine_reply){.proto = 2, .off = true};
    f->effects.off = true;
}

static void drop_data(struct follow *f)
{
    engine_session_done(&f->session);
    engine_reply_done(&f->reply);
    engine_effects_done(&f->effects);
    engine_delete(f->engine);
}

static void load(struct follow *f, struct rd_src *src)
{
    const struct engine_load_opts opts = {.keep_expired = true};
    const struct engine_env at = env();
    struct rd_err err = {0};
    if (!engine_load(f->engine, src, &opts, &at, NULL, &err))
        die(err.text);
    rd_src_close(src);
}

/* The database that is selected where the stream begins. */
static void set_db(struct follow *f)
{
    struct rd_src *src;
    struct rdb_reader *reader = NULL;
    struct rdb_event ev;
    char digits[RD_NUM_I64_MAX];
    uint64_t db;
    if (!rd_src_open_memory(&src, rd_buf_slice(&f->snapshot), NULL, NULL) ||
        !rdb_reader_new(&reader, src, NULL, NULL))
        die("out of memory");
    while (rdb_reader_next(reader, &ev) == RDB_EVENT)
        if (ev.kind == RDB_AUX && rd_slice_is(ev.aux.name, "repl-stream-db") &&
            rd_num_get_u64(rdb_string_bytes(&ev.aux.value, digits), &db)) {
            repl_psync_set_db(f->p, db);
            printf("stream-db %llu\n", (unsigned long long)db);
        }
    rdb_reader_free(reader);
    rd_src_close(src);
}

static void take_snapshot(struct follow *f)
{
    struct rd_src *src;
    drop_data(f);
    new_data(f);
    set_db(f);
    if (!rd_src_open_memory(&src, rd_buf_slice(&f->snapshot), NULL, NULL))
        die("out of memory");
    load(f, src);
}

static void read_data(struct follow *f)
{
    struct rd_src *src;
    if (f->data != NULL && access(f->data, F_OK) == 0) {
        if (!rd_src_open_file(&src, f->data, NULL, NULL))
            die(f->data);
        load(f, src);
    }
}

static void write_data(struct follow *f)
{
    const struct engine_save_opts opts = {.keep_expired = true};
    const struct rd_sink_opts sink_opts = RD_SINK_OPTS(.replace = true, .no_sync = true);
    struct rd_sink *sink;
    if (f->data != NULL &&
        (!rd_sink_open_file(&sink, f->data, &sink_opts, NULL) ||
         !engine_save(f->engine, sink, &opts, NULL) || !rd_sink_close(sink, NULL)))
        die(f->data);
}

/* ---- events ---- */

static void take_command(struct follow *f, const struct repl_event *ev)
{
    const struct engine_env at = env();
    f->commands++;
    if (ev->place.kind == REPL_SELECT)
        return;
    f->session.db = (unsigned)ev->place.db;
    engine_apply(f->engine, &f->session, ev->command.argc, ev->command.argv, &at, &f->reply,
                 &f->effects);
}

static void take_event(struct follow *f, const struct repl_event *ev)
{
    switch (ev->kind) {
    case REPL_REPLY:
        printf("reply %s %.*s\n", repl_step_word(ev->step), (int)ev->text.len,
               (const char *)ev->text.ptr);
        break;
    case REPL_FULL:
        printf("full %s %llu\n", ev->replid.hex, (unsigned long long)ev->offset);
        break;
    case REPL_SYNC:
        printf("sync\n");
        break;
    case REPL_CONTINUE:
        printf("continue %s %llu %s\n", ev->replid.hex, (unsigned long long)ev->offset,
               ev->changed ? "changed" : "same");
        break;
    case REPL_PAYLOAD_BEGIN:
        printf("payload by %s\n", ev->payload.by_mark ? "mark" : "length");
        break;
    case REPL_PAYLOAD:
        rd_buf_add(&f->snapshot, ev->bytes.ptr, ev->bytes.len);
        break;
    case REPL_PAYLOAD_END:
        take_snapshot(f);
        break;
    case REPL_COMMAND:
        take_command(f, ev);
        break;
    case REPL_ERROR:
        printf("error %s %s\n", repl_class_word(ev->error_class), ev->err->text);
        break;
    default:
        break;
    }
    fflush(stdout);
    f->ended = f->ended || ev->kind == REPL_END || ev->kind == REPL_ERROR;
}

static void take_events(struct follow *f)
{
    struct repl_event ev;
    struct repl_resume place;
    while (!f->ended && repl_psync_next(f->p, &ev) != REPL_MORE) {
        take_event(f, &ev);
        if (repl_psync_step(f->p) == REPL_STEP_STREAM && repl_psync_place(f->p, &place))
            f->ended = f->ended || place.offset >= f->until;
    }
}

/* ---- the link ---- */

static void dial(struct follow *f, const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (f->fd < 0 || connect(f->fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("cannot connect");
}

static void send_output(struct follow *f)
{
    struct rd_slice out = repl_psync_output(f->p);
    if (out.len == 0)
        return;
    ssize_t n = send(f->fd, out.ptr, out.len, MSG_NOSIGNAL);
    if (n > 0)
        repl_psync_sent(f->p, (size_t)n);
}

static void receive(struct follow *f)
{
    static uint8_t bytes[65536];
    ssize_t n = recv(f->fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        repl_psync_cut(f->p);
    for (size_t at = 0; n > 0 && at < (size_t)n && !f->ended;) {
        at += repl_psync_feed(f->p, rd_slice(bytes + at, (size_t)n - at));
        take_events(f);
    }
    take_events(f);
}

static void run(struct follow *f)
{
    while (!f->ended) {
        struct pollfd poll_fd = {.fd = f->fd, .events = POLLIN};
        uint64_t wait = repl_psync_tick(f->p, now_ms());
        take_events(f);
        send_output(f);
        if (!f->ended && poll(&poll_fd, 1, (int)wait) > 0)
            receive(f);
    }
    send_output(f);
    close(f->fd);
}

static void print_end(struct follow *f)
{
    struct repl_resume place;
    uint8_t sum[ENGINE_DIGEST];
    char hex[RD_DIGEST_HEX];
    printf("commands %llu\n", (unsigned long long)f->commands);
    if (repl_psync_safe_place(f->p, &place))
        printf("place %s %llu %llu\n", place.replid.hex, (unsigned long long)place.offset,
               (unsigned long long)place.db);
    engine_digest(f->engine, sum);
    printf("digest %s\n", rd_digest_hex(hex, rd_slice(sum, sizeof sum)));
}

int main(int argc, char **argv)
{
    struct follow f = {.until = UINT64_MAX, .opts = REPL_PSYNC_OPTS()};
    struct rd_err err = {0};
    if (argc < 2)
        die("usage: follow PORT [NAME=VALUE...]");
    for (int i = 2; i < argc; i++)
        take_argument(&f, argv[i]);
    new_data(&f);
    read_data(&f);
    if (!repl_psync_new(&f.p, &f.opts, &err))
        die(err.text);
    dial(&f, argv[1]);
    run(&f);
    print_end(&f);
    write_data(&f);
    repl_psync_free(f.p);
    rd_buf_done(&f.snapshot);
    drop_data(&f);
    return 0;
}
