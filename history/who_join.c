/* who_join.c - the lines that can be behind each command.
 *
 * Commands and lines are in the same order. So a command is not before the earliest line that is
 * left for it after the commands before it, nor after the latest line that the commands after it
 * leave. If all lines between these two that can be behind it are of one client, it is that one.
 */
#include "history/who_impl.h"

#include <stdlib.h>

#define NO_LINE SIZE_MAX

static int by_hash(const void *a, const void *b)
{
    const struct who_posting *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* ---- postings ---- */

struct postings {
    const struct who_posting *list;
    size_t n;
};

static struct postings postings_of(const struct history_who *who)
{
    return (struct postings){(const struct who_posting *)(const void *)who->postings.ptr,
                             who->postings.len / sizeof(struct who_posting)};
}

/* The first posting of a hash at this line or later. */
static size_t seek(const struct postings *p, uint64_t hash, size_t line)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct who_posting *at = &p->list[mid];
        if (at->hash < hash || (at->hash == hash && at->line < line))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_near(const struct history_who *who, const struct who_command *c, size_t line)
{
    int64_t away = who_lines(who)[line].time_us - c->time_us;
    return away <= HISTORY_WHO_WINDOW_US && away >= -HISTORY_WHO_WINDOW_US;
}

static size_t first_line(const struct history_who *who, const struct postings *p,
                         const struct who_command *c, size_t from)
{
    const uint64_t *hashes = who_hashes(who, c);
    size_t best = NO_LINE;
    for (size_t h = 0; h < c->n_hashes; h++)
        for (size_t i = seek(p, hashes[h], from); i < p->n && p->list[i].hash == hashes[h]; i++)
            if (p->list[i].line >= best)
                break;
            else if (is_near(who, c, p->list[i].line))
                best = p->list[i].line;
    return best;
}

/* Before `end`. */
static size_t last_line(const struct history_who *who, const struct postings *p,
                        const struct who_command *c, size_t end)
{
    const uint64_t *hashes = who_hashes(who, c);
    size_t best = NO_LINE;
    for (size_t h = 0; h < c->n_hashes; h++)
        for (size_t i = seek(p, hashes[h], end); i-- > 0 && p->list[i].hash == hashes[h];)
            if (best != NO_LINE && p->list[i].line <= best)
                break;
            else if (is_near(who, c, p->list[i].line))
                best = p->list[i].line;
    return best;
}

/* ---- the whole ---- */

static bool is_covered(const struct history_who *who, const struct who_command *c)
{
    const struct who_piece *pieces = (const struct who_piece *)(const void *)who->pieces.ptr;
    const struct who_piece *late = (const struct who_piece *)(const void *)who->late.ptr;
    if (c->time_us == INT64_MIN)
        return false;
    for (size_t i = 0; i < who->late.len / sizeof *late; i++)
        if (late[i].from_us <= c->time_us && c->time_us <= late[i].until_us)
            return false;
    for (size_t i = 0; i < who->pieces.len / sizeof *pieces; i++)
        if (pieces[i].from_us <= c->time_us - who->opts.early_us &&
            c->time_us + who->opts.late_us <= pieces[i].until_us)
            return true;
    return false;
}

static bool is_waited_for(const struct history_who *who, const struct who_command *c,
                          const struct who_waiting *w)
{
    const uint64_t *hashes = who_hashes(who, c);
    if (w->from_us > c->time_us + HISTORY_WHO_WINDOW_US ||
        (w->until_us != INT64_MAX && w->until_us < c->time_us - HISTORY_WHO_WINDOW_US))
        return false;
    if (w->any)
        return true;
    for (size_t h = 1; h < c->n_hashes; h++)
        if (hashes[h] == w->hash)
            return true;
    return false;
}

struct answer {
    uint32_t client;
    bool any, several, named;
};

static void take_client(struct answer *a, uint32_t client, bool named)
{
    a->several |= client == WHO_NOBODY || (a->any && client != a->client);
    a->client = client;
    a->any = true;
    a->named |= named;
}

static void take_waiting(const struct history_who *who, const struct who_command *c,
                         struct answer *a)
{
    const struct who_waiting *list = (const struct who_waiting *)(const void *)who->waiting.ptr;
    for (size_t i = 0; c->product.delayed && i < who->waiting.len / sizeof *list; i++)
        if (is_waited_for(who, c, &list[i]))
            take_client(a, list[i].client, true);
}

/* Whether the command may come from no line here: then it leaves all lines to the others. */
static bool is_free(const struct history_who *who, const struct who_command *c)
{
    struct answer waiting = {0};
    take_waiting(who, c, &waiting);
    return c->product.by_self || waiting.any;
}

static uint32_t client_of(const struct history_who *who, const struct postings *p,
                          const struct who_command *c)
{
    const uint64_t *hashes = who_hashes(who, c);
    struct answer a = {0};
    bool has_lines = c->first != NO_LINE && c->last != NO_LINE && c->first <= c->last;
    take_waiting(who, c, &a);
    for (size_t h = 0; has_lines && h < c->n_hashes && !a.several; h++)
        for (size_t i = seek(p, hashes[h], c->first);
             i < p->n && p->list[i].hash == hashes[h] && p->list[i].line <= c->last && !a.several;
             i++)
            if (is_near(who, c, p->list[i].line))
                take_client(&a, who_lines(who)[p->list[i].line].client,
                            p->list[i].names || !c->product.by_self);
    return a.any && a.named && !a.several ? a.client : WHO_NOBODY;
}

static size_t after(const struct history_who *who, size_t line)
{
    return line + who_lines(who)[line].once;
}

static void find_first(struct history_who *who, const struct postings *p)
{
    size_t n, from = 0;
    struct who_command *c = who_commands(who, &n);
    for (size_t i = 0; i < n; i++) {
        c[i].first = c[i].covered ? first_line(who, p, &c[i], from) : NO_LINE;
        if (c[i].first != NO_LINE && !is_free(who, &c[i]))
            from = after(who, c[i].first);
    }
}

static void find_last(struct history_who *who, const struct postings *p)
{
    size_t n, end = who->lines.len / sizeof(struct who_line);
    struct who_command *c = who_commands(who, &n);
    for (size_t i = n; i-- > 0;) {
        c[i].last = c[i].covered ? last_line(who, p, &c[i], end) : NO_LINE;
        if (c[i].last != NO_LINE && !is_free(who, &c[i]))
            end = c[i].last + !who_lines(who)[c[i].last].once;
    }
}

void history_who_join(struct history_who *who)
{
    size_t n;
    struct who_command *c = who_commands(who, &n);
    if (who->postings.len > 0)
        qsort(who->postings.ptr, who->postings.len / sizeof(struct who_posting),
              sizeof(struct who_posting), by_hash);
    const struct postings p = postings_of(who);
    for (size_t i = 0; i < n; i++)
        c[i].covered = is_covered(who, &c[i]);
    find_first(who, &p);
    find_last(who, &p);
    for (size_t i = 0; i < n; i++)
        c[i].client = c[i].covered && !c[i].expiring ? client_of(who, &p, &c[i]) : WHO_NOBODY;
}

static int by_place(const void *key, const void *item)
{
    const struct history_place *place = key;
    const struct who_command *c = item;
    if (place->part != c->place.part)
        return place->part < c->place.part ? -1 : 1;
    return (place->offset > c->place.offset) - (place->offset < c->place.offset);
}

struct rd_slice history_who_find(const struct history_who *who, struct history_place place)
{
    size_t n;
    const struct who_command *c = who_commands(who, &n);
    const struct who_command *found = n > 0 ? bsearch(&place, c, n, sizeof *c, by_place) : NULL;
    return found == NULL || found->client == WHO_NOBODY ? rd_slice(NULL, 0)
                                                        : who->clients.list[found->client - 1];
}
