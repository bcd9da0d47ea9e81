/* Clients: each sends one command after the other to a server that leads, and remembers what it
 * was told.
 *
 * A client appends growing numbers to a list of its own. What it was told is in the list: not more
 * than once, in order, and, unless loss is allowed, not less. Its other commands are of every kind
 * that replication treats in a way of its own: expiry, random members, scripts, transactions,
 * blocking, copies between databases.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "tests/sim/servers_impl.h"

enum { USERS = 4, NUMBERS_MAX = 1 << 14, PATIENCE_US = 3000000, KEYS = 6 };

enum told { NOT_SENT, SENT, TOLD };

static struct user {
    int fd; /* -1: it is not connected */
    int64_t next_us;
    int64_t sent_us; /* 0: it does not wait for a reply */
    struct rd_buf in;
    unsigned number; /* the last that was sent to the list */
    bool appends;    /* what it waits for is that reply */
    uint8_t told[NUMBERS_MAX];
} users[USERS];

static bool may_lose, stopped;

void clients_begin(void)
{
    memset(users, 0, sizeof users);
    for (int i = 0; i < USERS; i++)
        users[i].fd = -1;
    may_lose = stopped = false;
}

void clients_end(void)
{
    for (int i = 0; i < USERS; i++)
        rd_buf_done(&users[i].in);
}

void clients_stop(void)
{
    stopped = true;
}

void clients_allow_loss(void)
{
    may_lose = true;
}

/* ---- replies ---- */

static const char *line_end(const char *p, const char *end)
{
    const char *cr = memchr(p, '\r', (size_t)(end - p));
    return cr != NULL && end - cr >= 2 ? cr + 2 : NULL;
}

/* The end of a reply; NULL: it is not complete. */
static const char *reply_end(const char *p, const char *end)
{
    const char *next = line_end(p, end);
    if (next == NULL || (*p != '$' && *p != '*'))
        return next;
    long n = strtol(p + 1, NULL, 10);
    if (*p == '$')
        return n < 0 ? next : end - next >= n + 2 ? next + n + 2 : NULL;
    for (; n > 0 && next != NULL; n--)
        next = next < end ? reply_end(next, end) : NULL;
    return next;
}

/* What arrived is added, with a 0 after it. */
static ssize_t receive_all(int fd, struct rd_buf *to)
{
    char bytes[4096];
    ssize_t n;
    while ((n = sim_net_recv(fd, bytes, sizeof bytes)) > 0)
        rd_buf_add(to, bytes, (size_t)n);
    if (rd_buf_add(to, "", 1))
        to->len--;
    return n;
}

static void disconnect(struct user *c)
{
    sim.sums->lost += c->sent_us != 0;
    if (c->fd >= 0)
        sim_net_close(c->fd);
    c->fd = -1;
    c->sent_us = 0;
    rd_buf_reset(&c->in);
    c->next_us = sim.now_us + sim_between(10000, 300000);
}

/* After an error of a server that is not ready or leads no more, another one is looked for. */
static void take_reply(struct user *c)
{
    const char *p = (const char *)c->in.ptr;
    bool failed = *p == '-';
    sim.sums->commands++;
    if (c->appends && !failed)
        c->told[c->number] = TOLD;
    else if (c->appends)
        c->told[c->number] = NOT_SENT;
    c->sent_us = 0;
    if (failed && strncmp(p, "-ERR", 4) != 0 && strncmp(p, "-WRONGTYPE", 10) != 0) {
        disconnect(c);
        return;
    }
    rd_buf_reset(&c->in);
    c->next_us = sim.now_us + sim_between(500, 40000);
}

static void receive(struct user *c)
{
    ssize_t n = receive_all(c->fd, &c->in);
    const char *begin = (const char *)c->in.ptr;
    if (c->sent_us != 0 && c->in.len > 0 && reply_end(begin, begin + c->in.len) != NULL)
        take_reply(c);
    else if (n == 0 || (sim_net_events(c->fd) < 0) ||
             (c->sent_us != 0 && sim.now_us - c->sent_us > PATIENCE_US))
        disconnect(c);
}

/* ---- commands ---- */

static void put_append(struct user *c, int i, struct rd_buf *out)
{
    c->appends = true;
    c->number++;
    c->told[c->number] = SENT;
    if (sim_one_of(2))
        rd_buf_printf(out, "RPUSH list:%d %u\r\n", i, c->number);
    else
        rd_buf_printf(out, "EVAL \"return redis.call('rpush',KEYS[1],ARGV[1])\" 1 list:%d %u\r\n",
                      i, c->number);
}

/* %k: a key that other clients use, too; %n: a number; %t: a short time in milliseconds. */
static const char *const others[] = {
    "SET str:%k %n",
    "SET str:%k %n PX %t",
    "GETEX str:%k PX %t",
    "GET str:%k",
    "APPEND str:%k %n",
    "INCRBYFLOAT num:%k 0.1",
    "INCR num:%k",
    "PEXPIRE num:%k %t",
    "SADD set:%k %n",
    "SPOP set:%k",
    "SPOP set:%k 2",
    "SRANDMEMBER set:%k",
    "HSET hash:%k f%n %n",
    "HINCRBYFLOAT hash:%k f 0.5",
    "ZADD zset:%k %n m%n",
    "ZINCRBY zset:%k 1.5 m",
    "ZPOPMIN zset:%k",
    "XADD stream:%k MAXLEN ~ 50 * f %n",
    "XGROUP CREATE stream:%k g $ MKSTREAM",
    "XREADGROUP GROUP g c COUNT 2 STREAMS stream:%k >",
    "XAUTOCLAIM stream:%k g d 0 0",
    "LPUSH queue:%k %n",
    "BLPOP queue:%k 1",
    "BLMOVE queue:1 queue:2 LEFT RIGHT 1",
    "SETRANGE str:%k 40 x",
    "PFADD hll:%k %n",
    "BITFIELD bits:%k SET u8 #%k 7",
    "COPY str:%k copy:%k DB 1 REPLACE",
    "MOVE str:%k 2",
    "RENAME set:%k set:1",
    "SUNIONSTORE set:2 set:1 set:%k",
    "SORT set:%k BY nosort LIMIT 0 5 STORE sorted:%k",
    "EVAL \"redis.call('set',KEYS[1],redis.call('time')[2]) return redis.call('spop',KEYS[2])\" 2 "
    "str:%k set:%k",
    "DEL str:%k set:%k",
    "UNLINK zset:%k",
    "EXPIRE hash:%k 1",
    "WAIT 1 200",
    "PUBLISH news %n",
    "FUNCTION LOAD REPLACE \"#!lua name=lib%k\\n"
    "redis.register_function('f%k',function(keys) return redis.call('incr',keys[1]) end)\"",
    "FCALL f%k 1 num:%k",
    "EVAL \"redis.call('select',2) return redis.call('flushdb')\" 0",
};

static void put_other(struct rd_buf *out, const char *form)
{
    for (const char *p = form; *p != '\0'; p++) {
        if (*p != '%') {
            rd_buf_add(out, p, 1);
            continue;
        }
        uint64_t n = *++p == 'k' ? 1 + sim_below(KEYS) : *p == 'n' ? sim_below(1000) : 0;
        if (*p == 't')
            n = 1 + sim_below(3000);
        rd_buf_printf(out, "%" PRIu64, n);
    }
    rd_buf_add(out, "\r\n", 2);
}

static void send_command(struct user *c, int i)
{
    struct rd_buf out = {0};
    c->appends = false;
    if (sim_one_of(3) && c->number + 1 < NUMBERS_MAX)
        put_append(c, i, &out);
    else if (sim_one_of(8))
        rd_buf_printf(&out,
                      "EVAL \"for i=1,3 do redis.call('incr','pair:a') redis.call('incr','pair:b') "
                      "end\" 2 pair:a pair:b\r\n");
    else
        put_other(&out, others[sim_below(sizeof others / sizeof *others)]);
    c->sent_us = sim.now_us;
    if (sim_net_send(c->fd, out.ptr, out.len) != (ssize_t)out.len)
        disconnect(c);
    rd_buf_done(&out);
}

/* ---- time ---- */

static void connect_client(struct user *c)
{
    int host = host_leader();
    if (host != NOBODY)
        c->fd = sim_net_connect(host);
    c->next_us = sim.now_us + sim_between(10000, 100000);
}

static int64_t next_of(const struct user *c)
{
    int64_t next = c->sent_us != 0 ? c->sent_us + PATIENCE_US + 1
                   : stopped       ? SIM_NEVER
                                   : c->next_us;
    int64_t bytes = c->fd >= 0 ? sim_net_next(c->fd) : SIM_NEVER;
    return bytes > sim.now_us && bytes < next ? bytes : next;
}

int64_t clients_next(void)
{
    int64_t next = SIM_NEVER;
    for (int i = 0; i < USERS; i++)
        if (next_of(&users[i]) < next)
            next = next_of(&users[i]);
    return next;
}

void clients_run(void)
{
    for (int i = 0; i < USERS; i++) {
        struct user *c = &users[i];
        if (c->fd >= 0)
            receive(c);
        if (stopped || c->next_us > sim.now_us || c->sent_us != 0)
            continue;
        if (c->fd < 0)
            connect_client(c);
        else if ((sim_net_events(c->fd) & UV_WRITABLE) != 0)
            send_command(c, i);
    }
}

/* ---- checks ---- */

/* Sends a command and lets the host run until the whole reply is there. */
static bool ask(int host, const char *line, struct rd_buf *ret)
{
    int64_t until_us = sim.now_us + 20 * (int64_t)PATIENCE_US;
    int fd = sim_net_connect(host);
    bool ok = fd >= 0 && sim_net_send(fd, line, strlen(line)) > 0;
    while (ok) {
        receive_all(fd, ret);
        const char *begin = (const char *)ret->ptr;
        if (ret->len > 0 && reply_end(begin, begin + ret->len) != NULL)
            break;
        int64_t next = host_next(host), mine = sim_net_next(fd);
        next = mine > sim.now_us && mine < next ? mine : next;
        sim.now_us = next > sim.now_us && next != SIM_NEVER ? next : sim.now_us + 100;
        host_run(host);
        ok = sim.now_us < until_us && sim.hosts[host].srv != NULL;
    }
    if (fd >= 0)
        sim_net_close(fd);
    return ok;
}

/* The numbers of a list: growing, all of them sent, and none missing that a client was told of. */
static void check_list(int i, const char *reply)
{
    struct user *c = &users[i];
    long n = strtol(reply + 1, NULL, 10);
    unsigned before = 0;
    const char *p = strchr(reply, '\n') + 1;
    for (long k = 0; k < n; k++) {
        p = strchr(p, '\n') + 1; /* after the length */
        unsigned number = (unsigned)strtoul(p, NULL, 10);
        p = strchr(p, '\n') + 1;
        if (number <= before || number > c->number || c->told[number] == NOT_SENT) {
            sim_fail("a list has what was not written, twice or in another order");
            return;
        }
        for (unsigned missing = before + 1; missing < number; missing++)
            if (c->told[missing] == TOLD && !may_lose)
                sim_fail("a write that was acknowledged is missing");
        before = number;
    }
    for (unsigned missing = before + 1; missing <= c->number; missing++)
        if (c->told[missing] == TOLD && !may_lose)
            sim_fail("a last write that was acknowledged is missing");
}

void clients_check(int host)
{
    char line[64];
    struct rd_buf reply = {0};
    for (int i = 0; i < USERS; i++) {
        snprintf(line, sizeof line, "LRANGE list:%d 0 -1\r\n", i);
        rd_buf_reset(&reply);
        if (!ask(host, line, &reply) || reply.ptr[0] != '*' || !rd_buf_add(&reply, "", 1)) {
            sim_say("%.*s", (int)reply.len, (const char *)reply.ptr);
            sim_fail("a list cannot be read");
            break;
        }
        check_list(i, (const char *)reply.ptr);
    }
    rd_buf_reset(&reply);
    if (!ask(host, "MGET pair:a pair:b\r\n", &reply) || !rd_buf_add(&reply, "", 1)) {
        sim_fail("a pair cannot be read");
    } else {
        const char *a = strchr((const char *)reply.ptr, '\n') + 1; /* the same twice */
        size_t half = strlen(a) / 2;
        if (strlen(a) != 2 * half || memcmp(a, a + half, half) != 0)
            sim_fail("a script was applied in part");
    }
    rd_buf_done(&reply);
}

void clients_save(int host)
{
    struct rd_buf reply = {0};
    if (sim.traced && sim.hosts[host].srv != NULL)
        ask(host, "SAVE\r\n", &reply);
    rd_buf_done(&reply);
}
