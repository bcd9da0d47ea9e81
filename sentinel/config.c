/* The lines of the configuration file. */
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"
#include "sentinel/set_impl.h"
#include "sentinel/text_impl.h"

/* ---- reading ---- */

static const char unknown_line[] = "Unrecognized sentinel configuration statement.";
static const char no_master[] = "No such master with specified name.";
static const char no_host[] = "Can't resolve instance hostname.";
static const char no_port[] = "Invalid port number.";
static const char bad_epoch[] = "Invalid epoch.";

static const char *result_text(enum sentinel_result result)
{
    switch (result) {
    case SENTINEL_OK:
        return NULL;
    case SENTINEL_DUPLICATE:
        return "Duplicate master name.";
    case SENTINEL_BAD_HOST:
        return no_host;
    case SENTINEL_BAD_PORT:
        return no_port;
    case SENTINEL_BAD_QUORUM:
        return "Quorum must be 1 or greater.";
    default:
        return "Invalid master name.";
    }
}

static const char *read_monitor(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    struct sentinel_instance *m;
    int64_t port, quorum;
    (void)n;
    if (!rd_num_get_i64(words[2], &port))
        return no_port;
    if (!rd_num_get_i64(words[3], &quorum))
        quorum = 0;
    return result_text(sentinel_add_master(s, words[0], words[1], port, quorum, &m));
}

static const char *read_myid(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    (void)n;
    if (!sentinel_text_is_id(words[0]))
        return "Malformed Sentinel id in myid option.";
    sentinel_text_copy(s->id, sizeof s->id, words[0]);
    return NULL;
}

static const char *read_epoch(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    uint64_t epoch;
    (void)n;
    if (!rd_num_get_u64(words[0], &epoch))
        return bad_epoch;
    if (epoch > s->epoch)
        s->epoch = epoch;
    return NULL;
}

static const char *read_deny(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    (void)n;
    return sentinel_yes_no(words[0], &s->deny_scripts)
               ? NULL
               : "Please specify yes or no for the deny-scripts-reconfig options.";
}

static const char *read_config_epoch(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    struct sentinel_instance *m = sentinel_find(s, words[0]);
    uint64_t epoch;
    (void)n;
    if (m == NULL)
        return no_master;
    if (!rd_num_get_u64(words[1], &epoch))
        return bad_epoch;
    m->config_epoch = epoch;
    if (epoch > s->epoch)
        s->epoch = epoch;
    return NULL;
}

static const char *read_leader_epoch(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    struct sentinel_instance *m = sentinel_find(s, words[0]);
    uint64_t epoch;
    (void)n;
    if (m == NULL)
        return no_master;
    if (!rd_num_get_u64(words[1], &epoch))
        return bad_epoch;
    m->leader_epoch = epoch;
    return NULL;
}

static const char *read_replica(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    struct sentinel_instance *m = sentinel_find(s, words[0]);
    struct sentinel_addr addr;
    int port;
    (void)n;
    if (m == NULL)
        return no_master;
    if (!sentinel_text_port(words[2], &port) || port == 0)
        return no_port;
    if (!sentinel_addr_read(s, words[1], port, false, &addr))
        return no_host;
    sentinel_add_replica(m, &addr);
    return NULL;
}

/* A Sentinel without an id announces itself soon. Its port is 0 if its address was taken. */
static const char *read_sentinel(struct sentinel *s, const struct rd_slice *words, size_t n)
{
    struct sentinel_instance *m = sentinel_find(s, words[0]);
    struct sentinel_addr addr;
    int port;
    if (m == NULL)
        return no_master;
    if (!sentinel_text_port(words[2], &port))
        return no_port;
    if (!sentinel_addr_read(s, words[1], port, false, &addr))
        return no_host;
    if (n < 4)
        return NULL;
    if (!sentinel_text_is_id(words[3]))
        return "Malformed Sentinel id in known-sentinel option.";
    if (sentinel_find_sentinel(m, words[3]) == NULL && !rd_slice_is(words[3], s->id))
        sentinel_add_sentinel(m, words[3], &addr);
    return NULL;
}

/* The lines of a phase are read before those of the next, wherever they stand. */
enum { NAMES, MASTERS, THEIRS, PHASES };

static const struct directive {
    const char *word;
    int phase;
    size_t min, max; /* words after it */
    /* NULL: done; or what is wrong. */
    const char *(*read)(struct sentinel *s, const struct rd_slice *words, size_t n);
    const char *why; /* without read: of a wrong value of sentinel_global_set() */
} directives[] = {
    {"resolve-hostnames", NAMES, 1, 1, NULL,
     "Please specify yes or no for the resolve-hostnames option."},
    {"announce-hostnames", NAMES, 1, 1, NULL,
     "Please specify yes or no for the announce-hostnames option."},
    {"myid", MASTERS, 1, 1, read_myid, NULL},
    {"current-epoch", MASTERS, 1, 1, read_epoch, NULL},
    {"deny-scripts-reconfig", MASTERS, 1, 1, read_deny, NULL},
    {"announce-ip", MASTERS, 1, 1, NULL, no_host},
    {"announce-port", MASTERS, 1, 1, NULL, no_port},
    {"sentinel-user", MASTERS, 1, 1, NULL, "Invalid user name."},
    {"sentinel-pass", MASTERS, 1, 1, NULL, "Invalid password."},
    {"monitor", MASTERS, 4, 4, read_monitor, NULL},
    {"config-epoch", THEIRS, 2, 2, read_config_epoch, NULL},
    {"leader-epoch", THEIRS, 2, 2, read_leader_epoch, NULL},
    {"known-replica", THEIRS, 3, 3, read_replica, NULL},
    {"known-slave", THEIRS, 3, 3, read_replica, NULL},
    {"known-sentinel", THEIRS, 3, 4, read_sentinel, NULL},
};

/* NULL: the line has an option of a master, or is wrong. */
static const struct directive *find(const struct sentinel_line *line)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        const struct directive *d = &directives[i];
        if (rd_word_is(line->words[0], d->word) && line->n - 1 >= d->min && line->n - 1 <= d->max)
            return d;
    }
    return NULL;
}

static bool is_option(const struct sentinel_line *line, enum sentinel_option *ret)
{
    return line->n >= 2 && sentinel_option_find(line->words[0], line->n - 2, ret) &&
           *ret != SENTINEL_SET_QUORUM && line->n == 2 + sentinel_option_values(*ret);
}

static const char *option_fault(enum sentinel_option option)
{
    switch (option) {
    case SENTINEL_DOWN_AFTER:
    case SENTINEL_FAILOVER_TIMEOUT:
        return "negative or zero time parameter.";
    case SENTINEL_REBOOT_DOWN_AFTER:
        return "negative time parameter.";
    case SENTINEL_NOTIFICATION_SCRIPT:
        return "Notification script seems non existing or non executable.";
    case SENTINEL_RECONFIG_SCRIPT:
        return "Client reconfiguration script seems non existing or non executable.";
    default:
        return "Invalid value.";
    }
}

static const char *read_option(struct sentinel *s, const struct sentinel_line *line)
{
    enum sentinel_option option;
    if (!is_option(line, &option))
        return unknown_line;
    struct sentinel_instance *m = sentinel_find(s, line->words[1]);
    if (m == NULL)
        return no_master;
    return sentinel_option_set(m, option, line->words + 2) ? NULL : option_fault(option);
}

static const char *read_line(struct sentinel *s, const struct sentinel_line *line, int phase)
{
    const struct directive *d = line->n > 0 ? find(line) : NULL;
    if (line->n == 0 || phase != (d != NULL ? d->phase : THEIRS))
        return NULL;
    if (d == NULL)
        return read_option(s, line);
    if (d->read != NULL)
        return d->read(s, line->words + 1, line->n - 1);
    return sentinel_global_set(s, line->words[0], line->words[1]) == SENTINEL_OK ? NULL : d->why;
}

bool sentinel_config_load(struct sentinel *s, const struct sentinel_line *lines, size_t n,
                          int64_t now_ms, size_t *ret_bad, const char **ret_why)
{
    sentinel_clock(s, now_ms);
    for (int phase = 0; phase < PHASES; phase++) {
        for (size_t i = 0; i < n; i++) {
            const char *why = read_line(s, &lines[i], phase);
            if (why == NULL)
                continue;
            *ret_bad = i;
            *ret_why = why;
            return false;
        }
    }
    return true;
}

/* ---- writing ---- */

struct writer {
    const struct sentinel *s;
    void (*each)(void *ctx, const char *option, const char *line, bool is_default);
    void *ctx;
};

static bool needs_quotes(const char *word)
{
    for (const char *c = word; *c != 0; c++) {
        if (*c <= ' ' || *c >= 127 || strchr("\"'\\#", *c) != NULL)
            return true;
    }
    return word[0] == 0;
}

static bool put_word(struct rd_buf *out, const char *word)
{
    if (!needs_quotes(word))
        return rd_buf_printf(out, " %s", word);
    return rd_buf_add_byte(out, ' ') && rd_words_quote(out, rd_slice_str(word));
}

static void put(const struct writer *w, const char *option, size_t n, const char *const *words)
{
    char name[64];
    struct rd_buf line = {0};
    snprintf(name, sizeof name, "sentinel %s", option);
    bool ok = rd_buf_printf(&line, "%s", name);
    for (size_t i = 0; i < n && ok; i++)
        ok = put_word(&line, words[i]);
    if (ok && rd_buf_add_byte(&line, 0))
        w->each(w->ctx, name, (const char *)line.ptr, false);
    rd_buf_done(&line);
}

static void put_yes_no(const struct writer *w, const char *option, bool yes, bool normal)
{
    char name[64], line[80];
    snprintf(name, sizeof name, "sentinel %s", option);
    snprintf(line, sizeof line, "%s %s", name, yes ? "yes" : "no");
    w->each(w->ctx, name, line, yes == normal);
}

static void put_1(const struct writer *w, const char *option, const char *a)
{
    const char *const words[] = {a};
    put(w, option, 1, words);
}

/* This word alone is always quoted. */
static void put_quoted(const struct writer *w, const char *option, const char *word)
{
    char name[64];
    struct rd_buf line = {0};
    snprintf(name, sizeof name, "sentinel %s", option);
    if (word != NULL && rd_buf_printf(&line, "%s ", name) &&
        rd_words_quote(&line, rd_slice_str(word)) && rd_buf_add_byte(&line, 0))
        w->each(w->ctx, name, (const char *)line.ptr, false);
    rd_buf_done(&line);
}

static void put_2(const struct writer *w, const char *option, const char *a, const char *b)
{
    const char *const words[] = {a, b};
    if (b != NULL)
        put(w, option, 2, words);
}

static void put_number(const struct writer *w, const char *option, const char *name, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    if (name != NULL)
        put_2(w, option, name, text);
    else
        put_1(w, option, text);
}

static void put_if(const struct writer *w, const char *option, const char *name, int64_t v,
                   int64_t normal)
{
    if (v != normal)
        put_number(w, option, name, (uint64_t)v);
}

static void put_master(const struct writer *w, const struct sentinel_instance *m)
{
    char port[16], quorum[16];
    const struct sentinel_addr *addr = sentinel_current(m);
    snprintf(port, sizeof port, "%d", addr->port);
    snprintf(quorum, sizeof quorum, "%u", m->quorum);
    const char *const words[] = {m->name, sentinel_addr_host(w->s, addr), port, quorum};
    const struct sentinel_times *t = &w->s->times;
    put(w, "monitor", 4, words);
    put_if(w, "down-after-milliseconds", m->name, m->down_after_ms, t->default_down_after);
    put_if(w, "failover-timeout", m->name, m->failover_timeout_ms, t->default_failover_timeout);
    put_if(w, "parallel-syncs", m->name, m->parallel_syncs, 1);
    put_2(w, "notification-script", m->name, m->notification_script);
    put_2(w, "client-reconfig-script", m->name, m->reconfig_script);
    put_2(w, "auth-pass", m->name, m->auth_pass);
    put_2(w, "auth-user", m->name, m->auth_user);
    put_if(w, "master-reboot-down-after-period", m->name, m->reboot_down_after_ms, 0);
    put_number(w, "config-epoch", m->name, m->config_epoch);
    put_number(w, "leader-epoch", m->name, m->leader_epoch);
}

static void put_known(const struct writer *w, const struct sentinel_instance *m,
                      const struct sentinel_addr *addr, const char *id)
{
    char port[16];
    snprintf(port, sizeof port, "%d", addr->port);
    const char *const words[] = {m->name, sentinel_addr_host(w->s, addr), port, id};
    put(w, id != NULL ? "known-sentinel" : "known-replica", id != NULL ? 4 : 3, words);
}

/* In the last steps of a failover, the promoted replica is written as the master, and the old
 * master as a replica. */
static void put_others(const struct writer *w, const struct sentinel_instance *m)
{
    const struct sentinel_addr *current = sentinel_current(m);
    for (size_t i = 0; i < m->replicas.n; i++) {
        const struct sentinel_addr *addr = &m->replicas.at[i]->addr;
        put_known(w, m, addr == current ? &m->addr : addr, NULL);
    }
    for (size_t i = 0; i < m->sentinels.n; i++)
        put_known(w, m, &m->sentinels.at[i]->addr, m->sentinels.at[i]->run_id);
    for (size_t i = 0; i < m->n_renames; i++) {
        const char *const words[] = {m->name, m->renames[i].from, m->renames[i].to};
        put(w, "rename-command", 3, words);
    }
}

void sentinel_config_write(const struct sentinel *s,
                           void (*each)(void *ctx, const char *option, const char *line,
                                        bool is_default),
                           void *ctx)
{
    const struct writer writer = {s, each, ctx}, *w = &writer;
    put_1(w, "myid", s->id);
    put_yes_no(w, "deny-scripts-reconfig", s->deny_scripts, true);
    put_yes_no(w, "resolve-hostnames", s->resolves, false);
    put_yes_no(w, "announce-hostnames", s->announces_names, false);
    for (size_t i = 0; i < s->masters.n; i++) {
        put_master(w, s->masters.at[i]);
        put_others(w, s->masters.at[i]);
    }
    put_number(w, "current-epoch", NULL, s->epoch);
    put_quoted(w, "announce-ip", s->announce_ip);
    if (s->announce_port != 0)
        put_number(w, "announce-port", NULL, (uint64_t)s->announce_port);
    if (s->user != NULL)
        put_1(w, "sentinel-user", s->user);
    if (s->password != NULL)
        put_1(w, "sentinel-pass", s->password);
}
