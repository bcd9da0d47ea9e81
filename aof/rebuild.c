/* rebuild.c - chooses the base and the files after it. */
#include "aof/rebuild.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "aof/manifest_names.h"
#include "base/mem.h"

/* A file that may belong to the log. */
struct candidate {
    const struct aof_found *found;
    uint64_t seq;
    enum aof_type type;         /* base or incremental */
    const struct aof_file *old; /* its line in the old manifest, or NULL */
    bool upgraded;              /* a log from before 7.0, under the plain name */
    bool dropped;               /* reported already */
};

struct plan {
    struct aof_rebuild *ret;
    struct candidate *all;
    size_t n;
    const struct aof_manifest *old; /* or NULL */
    struct aof_manifest_names names;
    const struct aof_file *old_base; /* in it, or NULL */
    uint64_t old_first;              /* the lowest number of its incremental files; 0: none */
    const char *prefix;
    struct rd_err *err;
};

void aof_rebuild_init(struct aof_rebuild *plan)
{
    *plan = (struct aof_rebuild){0};
    aof_manifest_init(&plan->manifest);
}

void aof_rebuild_done(struct aof_rebuild *plan)
{
    aof_manifest_done(&plan->manifest);
    rd_free(plan->notes);
    aof_rebuild_init(plan);
}

const char *aof_use_word(enum aof_use use)
{
    static const char *const words[] = {"base", "incr", "history", "left-out", "missing"};
    return words[use];
}

/* -- notes -- */

static bool note(struct plan *p, const char *name, enum aof_use use, bool doubtful, const char *fmt,
                 ...) RD_PRINTF(5, 6);

static bool note(struct plan *p, const char *name, enum aof_use use, bool doubtful, const char *fmt,
                 ...)
{
    struct aof_rebuild *r = p->ret;
    if (r->n_notes == r->cap_notes) {
        size_t cap = r->cap_notes == 0 ? 16 : 2 * r->cap_notes;
        void *bigger = rd_realloc(r->notes, cap * sizeof *r->notes);
        if (bigger == NULL)
            return rd_err_nomem(p->err, cap * sizeof *r->notes);
        r->notes = bigger;
        r->cap_notes = cap;
    }
    struct aof_rebuild_note *added = &r->notes[r->n_notes++];
    va_list args;
    *added = (struct aof_rebuild_note){.use = use, .doubtful = doubtful};
    snprintf(added->name, sizeof added->name, "%s", name);
    va_start(args, fmt);
    vsnprintf(added->why, sizeof added->why, fmt, args);
    va_end(args);
    r->doubtful = r->doubtful || doubtful;
    return true;
}

/* -- evidence from the names and the old manifest -- */

static bool read_old(struct plan *p)
{
    if (p->old == NULL)
        return true;
    p->old_base = aof_manifest_base(p->old);
    for (size_t i = 0; i < aof_manifest_count(p->old); i++) {
        const struct aof_file *f = aof_manifest_file(p->old, i);
        if (f->type == AOF_INCR && (p->old_first == 0 || f->seq < p->old_first))
            p->old_first = f->seq;
    }
    return aof_manifest_names_init(&p->names, p->old, p->err);
}

/* True: *c is filled. False: not a file of the log; *ret_why describes it, or is NULL if its name
 * does not look like one. */
static bool classify(const struct plan *p, const struct aof_found *found, struct candidate *c,
                     const char **ret_why)
{
    bool snapshot;
    *c = (struct candidate){.found = found, .old = aof_manifest_names_find(&p->names, found->name)};
    *ret_why = NULL;
    if (strncmp(found->name, "temp-", 5) == 0) {
        *ret_why = "the temporary file of a rewrite";
        return false;
    }
    if (aof_file_name_parse(found->name, p->prefix, &c->seq, &c->type, &snapshot))
        return true;
    if (strcmp(found->name, p->prefix) == 0) {
        c->seq = c->old != NULL ? c->old->seq : 1;
        c->type = AOF_BASE;
        c->upgraded = true;
        return true;
    }
    if (c->old == NULL) {
        *ret_why = strncmp(found->name, p->prefix, strlen(p->prefix)) == 0
                       ? "not a name that servers use"
                       : NULL;
        return false;
    }
    c->seq = c->old->seq;
    c->type = c->old->type == AOF_INCR ? AOF_INCR : AOF_BASE;
    return true;
}

static int by_type_and_seq(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->type != y->type)
        return x->type == AOF_BASE ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return strcmp(x->found->name, y->found->name);
}

static bool gather(struct plan *p, const struct aof_found *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *why;
        if (classify(p, &files[i], &p->all[p->n], &why))
            p->n++;
        else if (why != NULL && !note(p, files[i].name, AOF_USE_NONE, false, "%s", why))
            return false;
    }
    qsort(p->all, p->n, sizeof *p->all, by_type_and_seq);
    return true;
}

/* The better one of two files with the same number. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if ((a->old != NULL) != (b->old != NULL))
        return a->old != NULL;
    if (a->upgraded != b->upgraded)
        return b->upgraded;
    if (a->found->sound != b->found->sound)
        return a->found->sound;
    return a->found->size > b->found->size;
}

static bool drop_doubles(struct plan *p)
{
    for (size_t i = 1; i < p->n; i++) {
        struct candidate *a = &p->all[i - 1], *b = &p->all[i];
        if (a->dropped || a->type != b->type || a->seq != b->seq)
            continue;
        struct candidate *worse = is_better(a, b) ? b : a, *better = worse == a ? b : a;
        worse->dropped = true;
        if (!note(p, worse->found->name, AOF_USE_NONE, true,
                  "has the same number as %.80s, which is %s", better->found->name,
                  (better->old != NULL) != (worse->old != NULL) ? "in the old manifest"
                  : better->found->sound != worse->found->sound ? "sound"
                                                                : "larger or newer"))
            return false;
        if (worse == a)
            continue;
        /* Compares the next file with the one that was kept. */
        struct candidate swap = *a;
        *a = *b;
        *b = swap;
    }
    return true;
}

/* -- the base -- */

static struct candidate *choose_base(struct plan *p)
{
    struct candidate *newest = NULL, *sound = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct candidate *c = &p->all[i];
        if (c->type != AOF_BASE || c->dropped)
            continue;
        newest = c;
        if (c->found->sound && c->found->content != AOF_EMPTY)
            sound = c;
    }
    return sound != NULL ? sound : newest;
}

static bool add_file(struct plan *p, const struct candidate *c, enum aof_type type)
{
    const struct aof_file *old = c->old;
    union {
        const char *lent;
        char *name;
    } name = {.lent = c->found->name};
    const struct aof_file file = {
        .name = name.name,
        .seq = c->seq,
        .type = type,
        .start_offset = old != NULL && type == AOF_INCR ? old->start_offset : -1,
        .end_offset = -1,
        .extra = old != NULL ? old->extra : NULL,
    };
    return aof_manifest_add(&p->ret->manifest, &file) != NULL || rd_err_nomem(p->err, sizeof file);
}

static bool take_base(struct plan *p, const struct candidate *base)
{
    const char *what = base->upgraded ? "a log from before Redis 7.0 that was migrated"
                       : base->found->content == AOF_SNAPSHOT ? "a snapshot"
                                                              : "commands";
    if (!base->found->sound)
        return add_file(p, base, AOF_BASE) &&
               note(p, base->found->name, AOF_USE_BASE, true,
                    "%s; it is damaged, but no base is sound: use --salvage first", what);
    return add_file(p, base, AOF_BASE) && note(p, base->found->name, AOF_USE_BASE, false,
                                               "%s; the newest base that is sound", what);
}

static bool other_bases(struct plan *p, const struct candidate *base)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct candidate *c = &p->all[i];
        if (c->type != AOF_BASE || c->dropped || c == base)
            continue;
        bool older = c->seq < base->seq;
        bool ok = older ? add_file(p, c, AOF_HISTORY) &&
                              note(p, c->found->name, AOF_USE_HISTORY, false, "an older base")
                        : note(p, c->found->name, AOF_USE_NONE, true,
                               "a newer base, but it is damaged or empty");
        if (!ok)
            return false;
    }
    return true;
}

/* -- incremental files -- */

enum age { AGE_OLDER, AGE_BEHIND, AGE_UNKNOWN };

/* The lines of the old manifest, if it has the same base. */
static enum age age_by_manifest(const struct plan *p, const struct candidate *base,
                                const struct candidate *c)
{
    if (p->old_base == NULL || base == NULL || strcmp(p->old_base->name, base->found->name) != 0)
        return AGE_UNKNOWN;
    if (c->old != NULL)
        return c->old->type == AOF_HISTORY ? AGE_OLDER : AGE_BEHIND;
    return p->old_first != 0 && c->seq > p->old_first ? AGE_BEHIND : AGE_UNKNOWN;
}

static enum age age_by_time(const struct candidate *base, const struct candidate *c)
{
    if (base == NULL || base->found->saved_s == AOF_NO_TIME)
        return AGE_UNKNOWN;
    if (c->found->last_s != AOF_NO_TIME && c->found->last_s < base->found->saved_s)
        return AGE_OLDER;
    return c->found->first_s != AOF_NO_TIME && c->found->first_s >= base->found->saved_s
               ? AGE_BEHIND
               : AGE_UNKNOWN;
}

static bool has_older_base(const struct plan *p, const struct candidate *base)
{
    return p->n > 0 && p->all[0].type == AOF_BASE && base != NULL && p->all[0].seq < base->seq;
}

static bool take_incr(struct plan *p, const struct candidate *base, const struct candidate *c)
{
    const char *why = "the old manifest says so";
    bool doubtful = false;
    enum age age = age_by_manifest(p, base, c);
    if (age == AGE_UNKNOWN) {
        age = age_by_time(base, c);
        why = age == AGE_OLDER ? "its last time is before the base was saved"
                               : "its first time is not before the base was saved";
    }
    if (age == AGE_UNKNOWN && base != NULL && !base->upgraded && c->seq < base->seq) {
        age = AGE_OLDER;
        why = "its number is below that of the base";
        doubtful = !has_older_base(p, base);
    } else if (age == AGE_UNKNOWN) {
        age = AGE_BEHIND;
        why =
            base == NULL ? "commands, without a base" : "its number is not below that of the base";
    }
    if (age == AGE_OLDER && doubtful)
        return note(p, c->found->name, AOF_USE_NONE, true, "%s", why);
    bool damaged = !c->found->sound && age == AGE_BEHIND;
    return add_file(p, c, age == AGE_OLDER ? AOF_HISTORY : AOF_INCR) &&
           note(p, c->found->name, age == AGE_OLDER ? AOF_USE_HISTORY : AOF_USE_INCR, damaged,
                "%s%s", why, damaged ? "; it is damaged" : "");
}

/* Numbers missing between two incremental files. */
static bool note_gaps(struct plan *p)
{
    const struct aof_manifest *m = &p->ret->manifest;
    uint64_t last = 0;
    for (size_t i = 0; i < aof_manifest_count(m); i++) {
        if (aof_manifest_file(m, i)->type != AOF_INCR)
            continue;
        char name[AOF_NAME_MAX + 1] = "";
        uint64_t seq = aof_manifest_file(m, i)->seq;
        if (last != 0 && seq > last + 1) {
            if (!aof_file_name(name, sizeof name, p->prefix, last + 1, AOF_INCR, false) ||
                !note(p, name, AOF_USE_MISSING, true, "%llu number%s left out: commands are lost",
                      (unsigned long long)(seq - last - 1), seq == last + 2 ? " is" : "s are"))
                return false;
        }
        last = seq;
    }
    return true;
}

/* Lines of the old manifest whose files do not exist. */
static bool note_lost(struct plan *p)
{
    size_t n = p->old != NULL ? aof_manifest_count(p->old) : 0;
    bool *there = rd_calloc(n + 1, sizeof *there), ok = true;
    if (there == NULL)
        return rd_err_nomem(p->err, n);
    for (size_t i = 0; i < p->n; i++)
        if (p->all[i].old != NULL)
            there[p->all[i].old - aof_manifest_file(p->old, 0)] = true;
    for (size_t i = 0; i < n && ok; i++) {
        const struct aof_file *f = aof_manifest_file(p->old, i);
        const struct aof_file *first = aof_manifest_names_find(&p->names, f->name);
        if (!there[first - aof_manifest_file(p->old, 0)])
            ok = note(p, f->name, AOF_USE_MISSING, f->type != AOF_HISTORY,
                      "named in the old manifest, but missing");
    }
    rd_free(there);
    return ok;
}

static bool choose(struct plan *p)
{
    const struct candidate *base = choose_base(p);
    if (base == NULL && p->n > 0 &&
        !note(p, p->prefix, AOF_USE_MISSING, true,
              "no base: a server would start with an empty data set"))
        return false;
    if (base != NULL && (!take_base(p, base) || !other_bases(p, base)))
        return false;
    for (size_t i = 0; i < p->n; i++)
        if (p->all[i].type == AOF_INCR && !p->all[i].dropped && !take_incr(p, base, &p->all[i]))
            return false;
    return note_gaps(p) && note_lost(p);
}

bool aof_rebuild_plan(struct aof_rebuild *ret, const struct aof_found *files, size_t n,
                      const char *prefix, const struct aof_manifest *old, struct rd_err *err)
{
    struct rd_err own = {0};
    struct plan p = {.ret = ret, .old = old, .prefix = prefix, .err = err != NULL ? err : &own};
    p.all = rd_calloc(n + 1, sizeof *p.all);
    if (p.all == NULL)
        return rd_err_nomem(err, n * sizeof *p.all);
    bool ok = read_old(&p) && gather(&p, files, n) && drop_doubles(&p) && choose(&p);
    aof_manifest_names_done(&p.names);
    rd_free(p.all);
    if (ok && aof_manifest_count(&ret->manifest) == 0)
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no file of this log was found");
    return ok;
}
