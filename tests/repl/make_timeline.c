/* make_timeline - the capture of a simulated master, with everything that makes times doubtful:
 * lost connections, kills, stops, full synchronizations, failovers, and a clock that is set.
 *
 *     make_timeline SEED SECONDS DIR
 *
 * The master sets the key "n" to 1, 2, 3 and so on, and a few others. Standard output is what a
 * capture does not know:
 *
 *     state US N     from this time on, n has this value
 *     clock US D     from this time on, the clock of the capture is ahead of the time by D
 *     event US WORD  what happens, for the reader
 *     end US
 *
 * All times are microseconds, and nothing takes time unless the simulation says so.
 */
#include "repl/capture_writer.h"
#include "tests/support/chance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND = 1000000, PING_US = 10 * SECOND, MAX = 20000 };

struct sent {
    int64_t us;
    uint64_t begin; /* offset in the history */
    size_t len;
    char bytes[120];
    unsigned state; /* of n, after it */
};

struct sim {
    uint64_t seed;
    int64_t now, end, ahead; /* the time, and how much the clock is ahead of it */
    struct sent *sent;       /* what the master wrote, from the last full synchronization on */
    size_t n_sent, taken;
    uint64_t offset;
    unsigned state;
    int64_t next_write, next_ping, next_fault, next_roll;
    char id;
    bool selected; /* the stream has a SELECT */

    struct rd_fs fs;
    struct repl_capture_writer *writer;
    int64_t heard; /* by the clock */
    const char *path;
};

static struct rd_err err;

static void check(bool ok)
{
    char line[1024];
    if (ok)
        return;
    rd_err_render(&err, line, sizeof line);
    fprintf(stderr, "make_timeline: %s\n", line);
    exit(1);
}

static uint64_t draw(struct sim *s, uint64_t n)
{
    return chance_below(&s->seed, n);
}

static int64_t between(struct sim *s, int64_t low, int64_t high)
{
    return low + (int64_t)draw(s, (uint64_t)(high - low));
}

static int64_t clock_us(const struct sim *s)
{
    return s->now + s->ahead;
}

static void event(const struct sim *s, const char *word)
{
    printf("event %" PRId64 " %s\n", s->now, word);
}

/* ---- the master ---- */

static void write_bytes(struct sim *s, const char *bytes)
{
    struct sent *c = &s->sent[s->n_sent];
    check(s->n_sent + 1 < MAX || rd_err_set(&err, RD_ERR_LIMIT, RD_NO_OFFSET, "too long"));
    *c = (struct sent){.us = s->now, .begin = s->offset, .len = strlen(bytes), .state = s->state};
    memcpy(c->bytes, bytes, c->len);
    s->offset += c->len;
    s->n_sent++;
}

static void master_writes(struct sim *s)
{
    char set[120], value[20];
    if (!s->selected)
        write_bytes(s, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
    s->selected = true;
    s->state++;
    int len = snprintf(value, sizeof value, "%u", s->state);
    if (draw(s, 5) == 0) { /* one transaction */
        write_bytes(s, "*1\r\n$5\r\nMULTI\r\n");
        write_bytes(s, "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nx\r\n");
        snprintf(set, sizeof set, "*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$%d\r\n%s\r\n", len, value);
        write_bytes(s, set);
        write_bytes(s, "*1\r\n$4\r\nEXEC\r\n");
    } else {
        snprintf(set, sizeof set, "*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$%d\r\n%s\r\n", len, value);
        write_bytes(s, set);
    }
    printf("state %" PRId64 " %u\n", s->now, s->state);
    /* Bursts and silence. */
    s->next_write = s->now + (draw(s, 4) > 0 ? between(s, 1, 300000) : between(s, 1, 9 * SECOND));
}

/* Only connected replicas get PINGs. */
static void master_turn(struct sim *s, bool connected)
{
    if (s->now >= s->next_write)
        master_writes(s);
    if (s->now < s->next_ping)
        return;
    if (connected)
        write_bytes(s, "*1\r\n$4\r\nPING\r\n");
    s->next_ping = s->now + PING_US;
}

/* ---- the capture ---- */

static void take_all(struct sim *s)
{
    for (; s->taken < s->n_sent; s->taken++) {
        const struct sent *c = &s->sent[s->taken];
        check(repl_capture_writer_append(s->writer, rd_slice(c->bytes, c->len), clock_us(s), &err));
        s->heard = clock_us(s);
    }
}

/* Lets the time pass up to `us`. The capture takes what the master writes at once, or not at all.
 */
static void pass(struct sim *s, int64_t us, bool connected, bool taking)
{
    while (s->now < us) {
        int64_t next = s->next_write < s->next_ping ? s->next_write : s->next_ping;
        s->now = next < us ? next : us;
        master_turn(s, connected);
        if (taking)
            take_all(s);
        if (taking && draw(s, 3) == 0)
            check(repl_capture_writer_flush(s->writer, &err));
    }
}

static void in_time(struct sim *s)
{
    take_all(s);
    s->heard = clock_us(s);
    check(repl_capture_writer_in_time(s->writer, clock_us(s), &err));
}

/* What was missed arrives in pieces. */
static void catch_up(struct sim *s)
{
    while (s->taken < s->n_sent) {
        size_t n = 1 + (size_t)draw(s, 10),
               upto = s->n_sent - s->taken < n ? s->n_sent : s->taken + n;
        int64_t later = s->now + between(s, 1, 200000);
        size_t all = s->n_sent;
        pass(s, later, true, false);
        for (; s->taken < upto; s->taken++)
            check(repl_capture_writer_append(
                s->writer, rd_slice(s->sent[s->taken].bytes, s->sent[s->taken].len), clock_us(s),
                &err));
        if (s->taken == all)
            break; /* the rest is as young as this */
    }
    in_time(s);
}

static struct repl_replid id_of(const struct sim *s)
{
    struct repl_replid id = {.hex = ""};
    memset(id.hex, s->id, REPL_REPLID_LEN);
    return id;
}

static void full(struct sim *s)
{
    char dump[100], value[20];
    struct repl_replid id = id_of(s);
    int len = snprintf(value, sizeof value, "%u", s->state);
    int n = snprintf(dump, sizeof dump, "REDIS0009\xfe%c\xfb%c%c%c\x01n%c%s\xff", 0, 1, 0, 0, len,
                     value);
    memset(dump + n, 0, 8); /* no checksum */
    /* What was written before the snapshot is in it. */
    s->n_sent = s->taken = 0;
    s->selected = false;
    check(repl_capture_writer_begin(s->writer, &id, s->offset, clock_us(s), &err));
    pass(s, s->now + between(s, 1, draw(s, 2) == 0 ? 400000 : 4 * SECOND), true, false);
    check(repl_capture_writer_snapshot(s->writer, rd_slice(dump, (size_t)n + 8), &err) &&
          repl_capture_writer_snapshot_end(s->writer, clock_us(s), &err));
    catch_up(s);
}

static void open_writer(struct sim *s)
{
    const struct repl_capture_writer_opts opts = {.recorded = true, .segment_size = 3000};
    check(rd_fs_open_folder(&s->fs, s->path, true, &err));
    check(repl_capture_writer_open(&s->writer, &s->fs, &opts, &err));
}

/* ---- what goes wrong ---- */

static int64_t draw_outage(struct sim *s)
{
    static const int64_t longest[] = {300000, 3 * SECOND, 30 * SECOND};
    return between(s, 1000, longest[draw(s, 3)]);
}

static void resume(struct sim *s, int64_t since_us, bool failover)
{
    struct repl_replid id;
    if (failover)
        s->id = s->id == 'f' ? '0' : s->id + 1;
    id = id_of(s);
    check(repl_capture_writer_flush(s->writer, &err) &&
          repl_capture_writer_interrupted(s->writer, since_us, clock_us(s), &err) &&
          repl_capture_writer_continue(s->writer, failover ? &id : NULL, clock_us(s), &err));
    catch_up(s);
}

static void lose(struct sim *s)
{
    bool failover = draw(s, 4) == 0;
    event(s, failover ? "failover" : "lost");
    pass(s, s->now + draw_outage(s), false, false);
    event(s, "resumed");
    resume(s, s->heard, failover);
}

/* After a kill, what was not written is requested again. */
static void forget(struct sim *s)
{
    struct repl_capture_point point;
    check(repl_capture_writer_point(s->writer, &point));
    while (s->taken > 0 && s->sent[s->taken - 1].begin >= point.offset)
        s->taken--;
}

static void restart(struct sim *s, bool killed)
{
    event(s, killed ? "killed" : "ended");
    if (killed)
        repl_capture_writer_abort(s->writer);
    else
        check(repl_capture_writer_close(s->writer, &err));
    rd_fs_close_posix(&s->fs);
    pass(s, s->now + draw_outage(s), false, false);
    event(s, "started");
    open_writer(s);
    forget(s);
    resume(s, REPL_CAPTURE_NO_TIME, draw(s, 5) == 0);
}

static void stop(struct sim *s)
{
    int64_t since = clock_us(s);
    event(s, "stopped");
    pass(s, s->now + between(s, 500001, 20 * SECOND), true, false);
    event(s, "goes-on");
    if (s->taken < s->n_sent)
        check(repl_capture_writer_interrupted(s->writer, since, clock_us(s), &err));
    catch_up(s);
}

static void set_clock(struct sim *s)
{
    int64_t before = clock_us(s);
    int64_t step = between(s, 500001, draw(s, 2) == 0 ? 3 * SECOND : 60 * SECOND);
    event(s, "clock");
    s->ahead += draw(s, 2) == 0 ? step : -step;
    printf("clock %" PRId64 " %" PRId64 "\n", s->now, s->ahead);
    check(repl_capture_writer_clock(s->writer, before, clock_us(s), &err));
}

static void resync(struct sim *s)
{
    event(s, "resync");
    pass(s, s->now + draw_outage(s), false, false);
    s->id = s->id == 'f' ? '0' : s->id + 1;
    full(s);
}

static void fault(struct sim *s)
{
    switch (draw(s, 8)) {
    case 0:
        resync(s);
        break;
    case 1:
    case 2:
        restart(s, true);
        break;
    case 3:
        restart(s, false);
        break;
    case 4:
        stop(s);
        break;
    case 5:
        set_clock(s);
        break;
    default:
        lose(s);
        break;
    }
    s->next_fault = s->now + between(s, 1, 20 * SECOND);
}

static void play(struct sim *s)
{
    while (s->now < s->end) {
        int64_t next = s->next_fault < s->next_roll ? s->next_fault : s->next_roll;
        pass(s, next, true, true);
        if (s->now >= s->next_roll) {
            check(repl_capture_writer_roll(s->writer, &err));
            s->next_roll = s->now + between(s, 1, 15 * SECOND);
        }
        if (s->now >= s->next_fault)
            fault(s);
    }
    printf("end %" PRId64 "\n", s->now);
}

int main(int argc, char **argv)
{
    struct sim s = {.now = INT64_C(1700000000) * SECOND, .id = '1', .offset = 1000};
    if (argc != 4) {
        fprintf(stderr, "usage: make_timeline SEED SECONDS DIR\n");
        return 2;
    }
    s.seed = strtoull(argv[1], NULL, 10);
    s.end = s.now + strtoll(argv[2], NULL, 10) * SECOND;
    s.path = argv[3];
    s.sent = calloc(MAX, sizeof *s.sent);
    s.next_write = s.now + 1;
    s.next_ping = s.now + PING_US;
    s.next_fault = s.next_roll = s.now + between(&s, 1, 10 * SECOND);
    printf("state %" PRId64 " 0\nclock %" PRId64 " 0\n", s.now, s.now);
    open_writer(&s);
    full(&s);
    play(&s);
    check(repl_capture_writer_roll(s.writer, &err) && repl_capture_writer_close(s.writer, &err));
    rd_fs_close_posix(&s.fs);
    free(s.sent);
    return 0;
}
