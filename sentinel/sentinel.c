#include "sentinel/sentinel_impl.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"
#include "sentinel/text_impl.h"

/* ---- memory and lists ---- */

void *sentinel_alloc(struct sentinel *s, size_t size)
{
    void *block = rd_calloc(1, size);
    s->no_memory |= block == NULL;
    return block;
}

/* An empty value is NULL. */
void sentinel_replace(struct sentinel *s, char **text, struct rd_slice value)
{
    char *copy = NULL;
    if (value.len > 0) {
        copy = sentinel_text_dup(value);
        s->no_memory |= copy == NULL;
    }
    rd_free(*text);
    *text = copy;
}

bool sentinel_add_to(struct sentinel *s, struct sentinel_list *list, struct sentinel_instance *ri)
{
    if (list->n == list->cap) {
        size_t cap = list->cap * 2 + 4;
        struct sentinel_instance **grown = rd_realloc(list->at, cap * sizeof(*grown));
        if (grown == NULL) {
            s->no_memory = true;
            return false;
        }
        list->at = grown;
        list->cap = cap;
    }
    list->at[list->n++] = ri;
    return true;
}

void sentinel_take_from(struct sentinel_list *list, const struct sentinel_instance *ri)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i] != ri)
            list->at[kept++] = list->at[i];
    }
    list->n = kept;
}

uint64_t sentinel_random(struct sentinel *s, uint64_t below)
{
    return s->opts.random(s->opts.ctx) % below;
}

/* ---- life ---- */

struct sentinel *sentinel_new(const struct sentinel_opts *opts)
{
    struct sentinel *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->opts = *opts;
    s->deny_scripts = true;
#define X(name, word, ms) s->times.name = (ms);
    SENTINEL_TIMES(X)
#undef X
    return s;
}

void sentinel_free(struct sentinel *s)
{
    if (s == NULL)
        return;
    sentinel_drop_all(&s->masters);
    sentinel_scripts_free(s);
    rd_queue_done(&s->actions);
    rd_free(s->announce_ip);
    rd_free(s->user);
    rd_free(s->password);
    rd_free(s);
}

/* Whether the configuration has another Sentinel with this id. */
static bool id_is_taken(const struct sentinel *s)
{
    for (size_t i = 0; i < s->masters.n; i++) {
        if (sentinel_find_sentinel(s->masters.at[i], rd_slice_str(s->id)) != NULL)
            return true;
    }
    return false;
}

void sentinel_start(struct sentinel *s)
{
    while (s->id[0] == 0 || id_is_taken(s))
        rd_digest_draw_hex(s->id, SENTINEL_ID_LEN, s->opts.random, s->opts.ctx);
    s->started = true;
    sentinel_save(s);
    sentinel_log(s, SENTINEL_LEVEL_WARNING, "Sentinel ID is %s", s->id);
    for (size_t i = 0; i < s->masters.n; i++)
        sentinel_event(s, SENTINEL_LEVEL_WARNING, "+monitor", s->masters.at[i], " quorum %u",
                       s->masters.at[i]->quorum);
}

bool sentinel_no_memory(const struct sentinel *s)
{
    return s->no_memory;
}

const char *sentinel_id(const struct sentinel *s)
{
    return s->id;
}

uint64_t sentinel_epoch(const struct sentinel *s)
{
    return s->epoch;
}

/* Times that were noted must not be in the future: if the clock is set back, the time here goes on
 * from where it was. */
void sentinel_clock(struct sentinel *s, int64_t now_ms)
{
    if (now_ms < s->wall_ms) {
        s->ahead_ms += s->wall_ms - now_ms;
        s->set_back = true;
    }
    s->wall_ms = now_ms;
    s->now_ms = now_ms + s->ahead_ms;
}

void sentinel_saved(struct sentinel *s, bool ok)
{
    s->unsaved = !ok;
}

/* ---- instances ---- */

struct sentinel_instance *sentinel_find(struct sentinel *s, struct rd_slice name)
{
    for (size_t i = 0; i < s->masters.n; i++) {
        if (rd_slice_is(name, s->masters.at[i]->name))
            return s->masters.at[i];
    }
    return NULL;
}

size_t sentinel_count(const struct sentinel *s)
{
    return s->masters.n;
}

struct sentinel_instance *sentinel_at(const struct sentinel *s, size_t i)
{
    return s->masters.at[i];
}

const char *sentinel_name(const struct sentinel_instance *master)
{
    return master->name;
}

void sentinel_address(const struct sentinel *s, const struct sentinel_instance *master,
                      const char **ret_host, int *ret_port)
{
    const struct sentinel_addr *addr = sentinel_current(master);
    *ret_host = sentinel_addr_host(s, addr);
    *ret_port = addr->port;
}

static const struct sentinel_list *list_of(const struct sentinel_instance *master,
                                           enum sentinel_of of)
{
    return of == SENTINEL_REPLICAS ? &master->replicas : &master->sentinels;
}

size_t sentinel_count_of(const struct sentinel_instance *master, enum sentinel_of of)
{
    return list_of(master, of)->n;
}

struct sentinel_instance *sentinel_at_of(const struct sentinel_instance *master,
                                         enum sentinel_of of, size_t i)
{
    return list_of(master, of)->at[i];
}

bool sentinel_is_announced(const struct sentinel_instance *replica)
{
    return replica->announced;
}

/* ---- periods ---- */

const struct sentinel_times *sentinel_times(const struct sentinel *s)
{
    return &s->times;
}

enum sentinel_result sentinel_set_time(struct sentinel *s, struct rd_slice word,
                                       struct rd_slice value)
{
    enum { TIME_MAX = 1000000000 };
    int64_t ms;
    bool ok = rd_num_get_i64(value, &ms) && ms > 0 && ms <= TIME_MAX;
#define X(name, known, normal)                                                                     \
    if (rd_word_is(word, known)) {                                                                 \
        if (ok)                                                                                    \
            s->times.name = ms;                                                                    \
        return ok ? SENTINEL_OK : SENTINEL_BAD_VALUE;                                              \
    }
    SENTINEL_TIMES(X)
#undef X
    return SENTINEL_UNKNOWN;
}

void sentinel_flush(struct sentinel *s)
{
    sentinel_save(s);
}

void sentinel_simulate(struct sentinel *s, unsigned failures)
{
    s->failures = failures;
    if ((failures & SENTINEL_CRASH_AFTER_ELECTION) != 0)
        sentinel_log(s, SENTINEL_LEVEL_WARNING,
                     "Failure simulation: this Sentinel will crash after being successfully "
                     "elected as failover leader");
    if ((failures & SENTINEL_CRASH_AFTER_PROMOTION) != 0)
        sentinel_log(s, SENTINEL_LEVEL_WARNING,
                     "Failure simulation: this Sentinel will crash after promoting the selected "
                     "replica to master");
}
