#include "tools/migrate/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/crc16.h"
#include "base/mem.h"
#include "base/words.h"
#include "tools/migrate/position.h"

/* ---- memory ---- */

static bool reserve(void **ptr, size_t *cap, size_t n, size_t size, struct rd_err *err)
{
    if (n <= *cap)
        return true;
    size_t want = n < 16 ? 16 : n + n / 2;
    void *bigger = rd_realloc(*ptr, want * size);
    if (bigger == NULL)
        return rd_err_nomem(err, want * size);
    *ptr = bigger;
    *cap = want;
    return true;
}

void migrate_plan_done(struct migrate_plan *plan)
{
    rd_free(plan->pieces);
    rd_free(plan->keys);
    rd_free(plan->args);
    rd_free(plan->names);
    *plan = (struct migrate_plan){0};
}

/* ---- the keys of a command ---- */

static bool refuse(struct migrate_plan *plan, const struct rd_slice *argv, const char *what)
{
    char name[60];
    plan->kind = MIGRATE_REFUSED;
    plan->n = 0;
    snprintf(plan->why, sizeof plan->why, "%s %s", rd_err_quote(name, sizeof name, argv[0]), what);
    return true;
}

bool migrate_plan_selects(const struct migrate_plan *plan)
{
    return plan->n_renames > 0 || plan->selects;
}

bool migrate_plan_wants(const struct migrate_plan *plan, uint64_t db, struct rd_slice key)
{
    return !migrate_key_is(key) &&
           (plan->filter == NULL || filter_may_want(plan->filter, db, &key));
}

static const struct migrate_rename *find_rename(const struct migrate_plan *plan,
                                                struct rd_slice key)
{
    for (size_t i = 0; i < plan->n_renames; i++) {
        const struct migrate_rename *r = &plan->renames[i];
        if (key.len >= r->from.len && memcmp(key.ptr, r->from.ptr, r->from.len) == 0)
            return r;
    }
    return NULL;
}

static struct rd_slice put_name(uint8_t *name, struct rd_slice prefix, struct rd_slice rest)
{
    if (prefix.len > 0)
        memcpy(name, prefix.ptr, prefix.len);
    if (rest.len > 0)
        memcpy(name + prefix.len, rest.ptr, rest.len);
    return rd_slice(name, prefix.len + rest.len);
}

static struct rd_slice after(struct rd_slice key, struct rd_slice prefix)
{
    return rd_slice(key.ptr + prefix.len, key.len - prefix.len);
}

bool migrate_plan_rename(struct migrate_plan *plan, struct rd_slice key, struct rd_slice *ret,
                         struct rd_err *err)
{
    const struct migrate_rename *r = find_rename(plan, key);
    *ret = key;
    if (r == NULL)
        return true;
    if (!reserve((void **)&plan->names, &plan->cap_names, key.len + r->to.len + 1, 1, err))
        return false;
    *ret = put_name(plan->names, r->to, after(key, r->from));
    return true;
}

bool migrate_plan_has(struct migrate_plan *plan, uint64_t db, struct rd_slice key)
{
    if (migrate_key_is(key))
        return false;
    if (find_rename(plan, key) == NULL && migrate_plan_wants(plan, db, key))
        return true;
    for (size_t i = 0; i < plan->n_renames; i++) {
        const struct migrate_rename *r = &plan->renames[i];
        if (key.len < r->to.len || (r->to.len > 0 && memcmp(key.ptr, r->to.ptr, r->to.len) != 0) ||
            !reserve((void **)&plan->names, &plan->cap_names, key.len + r->from.len + 1, 1, NULL))
            continue;
        struct rd_slice was = put_name(plan->names, r->from, after(key, r->to));
        if (find_rename(plan, was) == r && migrate_plan_wants(plan, db, was))
            return true;
    }
    return false;
}

/* The keys, without channels. False: they cannot be found, and the plan is refused if it needs
 * them. */
static bool find_keys(struct migrate_plan *plan, const struct engine_command *cmd,
                      const struct rd_slice *argv, size_t argc, bool *ret_found, struct rd_err *err)
{
    size_t n = 0;
    enum engine_keys_status status =
        engine_command_keys_accepted(cmd, argv, argc, plan->keys, plan->cap_keys, &n);
    if (n > plan->cap_keys) {
        if (!reserve((void **)&plan->keys, &plan->cap_keys, n, sizeof *plan->keys, err))
            return false;
        status = engine_command_keys_accepted(cmd, argv, argc, plan->keys, plan->cap_keys, &n);
    }
    *ret_found = status == ENGINE_KEYS_OK || status == ENGINE_KEYS_NONE;
    plan->n_keys = 0;
    for (size_t i = 0; *ret_found && i < n; i++)
        if ((plan->keys[i].flags & ENGINE_KEY_NOT_KEY) == 0)
            plan->keys[plan->n_keys++] = plan->keys[i];
    return true;
}

/* ---- pieces ---- */

static bool add_piece(struct migrate_plan *plan, unsigned slot, const struct rd_slice *argv,
                      size_t argc, bool unchanged, struct rd_err *err)
{
    if (!reserve((void **)&plan->pieces, &plan->cap_pieces, plan->n + 1, sizeof *plan->pieces, err))
        return false;
    plan->pieces[plan->n++] = (struct migrate_piece){slot, argv, argc, unchanged};
    plan->kind = MIGRATE_PIECES;
    return true;
}

static bool add_whole(struct migrate_plan *plan, const struct rd_slice *argv, size_t argc,
                      struct rd_slice place, struct rd_err *err)
{
    return add_piece(plan, plan->cluster ? rd_hash_slot(place) : 0, argv, argc, true, err);
}

/* Copies the arguments, with the keys as the target names them. */
static bool rename_keys(struct migrate_plan *plan, const struct rd_slice **argv, size_t argc,
                        struct rd_err *err)
{
    size_t room = 0, at = 0;
    for (size_t i = 0; i < plan->n_keys; i++) {
        struct rd_slice key = (*argv)[plan->keys[i].index];
        const struct migrate_rename *r = find_rename(plan, key);
        room += r != NULL ? key.len - r->from.len + r->to.len : 0;
    }
    if (!reserve((void **)&plan->args, &plan->cap_args, 2 * argc, sizeof *plan->args, err) ||
        !reserve((void **)&plan->names, &plan->cap_names, room + 1, 1, err))
        return false;
    memcpy(plan->args, *argv, argc * sizeof **argv);
    for (size_t i = 0; i < plan->n_keys; i++) {
        struct rd_slice *key = &plan->args[plan->keys[i].index];
        const struct migrate_rename *r = find_rename(plan, *key);
        if (r == NULL)
            continue;
        *key = put_name(plan->names + at, r->to, after(*key, r->from));
        at += key->len;
    }
    *argv = plan->args;
    return true;
}

/* The number of arguments of a key, itself included, in commands that can be divided; 0: this one
 * cannot. */
static size_t span_of(struct rd_slice name)
{
    if (rd_word_is(name, "del") || rd_word_is(name, "unlink"))
        return 1;
    return rd_word_is(name, "mset") || rd_word_is(name, "msetnx") ? 2 : 0;
}

/* One piece for each slot that has wanted keys. MSETNX has set all keys, or it is not in the
 * stream. */
static bool divide(struct migrate_plan *plan, uint64_t db, const struct rd_slice *source,
                   const struct rd_slice *argv, size_t argc, struct rd_err *err)
{
    static const char mset[] = "MSET";
    size_t span = span_of(argv[0]), used = 2 * argc;
    struct rd_slice name = rd_word_is(argv[0], "msetnx") ? rd_slice_str(mset) : argv[0];
    struct rd_slice *args;
    size_t first = 0;
    /* Each key needs at most its own arguments and a name. argv may be the start of plan->args. */
    bool own = argv == plan->args;
    if (!reserve((void **)&plan->args, &plan->cap_args, used + 3 * argc, sizeof *plan->args, err))
        return false;
    if (own)
        argv = plan->args;
    args = plan->args + used;
    for (size_t i = 1; i + span <= argc; i += span) {
        if (!migrate_plan_wants(plan, db, source[i]))
            continue;
        unsigned slot = plan->cluster ? rd_hash_slot(argv[i]) : 0;
        size_t piece = 0;
        while (piece < plan->n && plan->pieces[piece].slot != slot)
            piece++;
        if (piece < plan->n)
            continue;
        struct rd_slice *begin = args + first;
        size_t n = 0;
        begin[n++] = name;
        for (size_t k = i; k + span <= argc; k += span)
            if (migrate_plan_wants(plan, db, source[k]) &&
                (!plan->cluster || rd_hash_slot(argv[k]) == slot)) {
                memcpy(begin + n, argv + k, span * sizeof *argv);
                n += span;
            }
        first += n;
        if (!add_piece(plan, slot, begin, n, false, err))
            return false;
    }
    return true;
}

static bool plan_keys(struct migrate_plan *plan, uint64_t db, const struct rd_slice *argv,
                      size_t argc, struct rd_err *err)
{
    const struct rd_slice *source = argv;
    size_t n_wanted = 0, n_renamed = 0;
    bool same = true;
    for (size_t i = 0; i < plan->n_keys; i++) {
        struct rd_slice key = argv[plan->keys[i].index];
        n_wanted += migrate_plan_wants(plan, db, key);
        n_renamed += find_rename(plan, key) != NULL;
    }
    if (n_wanted == 0)
        return true;
    if (n_wanted < plan->n_keys && span_of(argv[0]) == 0)
        return refuse(plan, argv, "has keys that are copied and keys that are not");
    if (n_renamed > 0 && !rename_keys(plan, &argv, argc, err))
        return false;
    unsigned slot = plan->cluster ? rd_hash_slot(argv[plan->keys[0].index]) : 0;
    for (size_t i = 1; plan->cluster && i < plan->n_keys; i++)
        same &= rd_hash_slot(argv[plan->keys[i].index]) == slot;
    if (same && n_wanted == plan->n_keys)
        return add_piece(plan, slot, argv, argc, n_renamed == 0, err);
    if (span_of(argv[0]) == 0)
        return refuse(plan, argv, "has keys of several slots, which a cluster does not accept");
    return divide(plan, db, source, argv, argc, err);
}

/* ---- commands without keys, and those that concern databases ---- */

/* COPY … DB N, MOVE. */
static bool leaves_db(const struct rd_slice *argv, size_t argc)
{
    if (rd_word_is(argv[0], "move"))
        return true;
    for (size_t i = 3; rd_word_is(argv[0], "copy") && i < argc; i++)
        if (rd_word_is(argv[i], "db"))
            return true;
    return false;
}

static bool plan_without_keys(struct migrate_plan *plan, const struct engine_command *cmd,
                              const struct rd_slice *argv, size_t argc, struct rd_err *err)
{
    if (rd_word_is(argv[0], "publish") || rd_word_is(argv[0], "spublish"))
        return add_whole(plan, argv, argc, argc > 1 ? argv[1] : argv[0], err);
    if (rd_word_is(argv[0], "function") || rd_word_is(argv[0], "script"))
        return add_piece(plan, 0, argv, argc, true, err) && (plan->kind = MIGRATE_EVERYWHERE, true);
    if (!plan->cluster && !migrate_plan_selects(plan))
        return add_whole(plan, argv, argc, argv[0], err);
    if (engine_command_has_no_data(cmd))
        return true;
    return refuse(plan, argv, "may change any key, so it cannot be sent to a part of the keys");
}

static bool plan_known(struct migrate_plan *plan, uint64_t db, const struct engine_command *cmd,
                       const struct rd_slice *argv, size_t argc, struct rd_err *err)
{
    bool narrow = plan->cluster || migrate_plan_selects(plan);
    bool found;
    if (rd_word_is(argv[0], "flushall") || rd_word_is(argv[0], "flushdb")) {
        plan->kind = MIGRATE_FLUSH;
        plan->all_dbs = rd_word_is(argv[0], "flushall");
        return true;
    }
    if (rd_word_is(argv[0], "swapdb")) {
        if (narrow)
            return refuse(plan, argv, "cannot be done in a cluster or for a part of the keys");
        return add_whole(plan, argv, argc, argv[0], err) && (plan->kind = MIGRATE_SWAP, true);
    }
    if (narrow && leaves_db(argv, argc))
        return refuse(plan, argv,
                      "to another database cannot be done in a cluster or for a part "
                      "of the keys");
    if (!find_keys(plan, cmd, argv, argc, &found, err))
        return false;
    if (!found)
        return narrow ? refuse(plan, argv, "has arguments in which its keys cannot be found")
                      : add_whole(plan, argv, argc, argv[0], err);
    if (plan->n_keys == 0)
        return plan_without_keys(plan, cmd, argv, argc, err);
    return plan_keys(plan, db, argv, argc, err);
}

bool migrate_plan_make(struct migrate_plan *plan, uint64_t db, const struct rd_slice *argv,
                       size_t argc, struct rd_err *err)
{
    const struct engine_command *cmd = engine_command_resolve(argv, argc);
    plan->kind = MIGRATE_NOTHING;
    plan->n = plan->n_keys = 0;
    plan->why[0] = '\0';
    bool dropped = plan->filter != NULL && !filter_may_want(plan->filter, db, NULL);
    if (plan->cluster && !plan->several_dbs && db != 0 && !dropped)
        return refuse(plan, argv, "is for another database than 0, which the cluster lacks");
    if (cmd != NULL)
        return plan_known(plan, db, cmd, argv, argc, err);
    if (plan->cluster || migrate_plan_selects(plan))
        return refuse(plan, argv, "is not known, so its keys are not known");
    return add_whole(plan, argv, argc, argv[0], err);
}
