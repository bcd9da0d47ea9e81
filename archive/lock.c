#include "archive/lock.h"

#include "base/buf.h"
#include "base/mem.h"
#include "json/members.h"
#include "json/write.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TEXT_MAX = 4096,
    SETTLE_TRIES = 5,
    SETTLE_MS = 200,
    EXPIRE_LIMIT_MS = 24 * 3600 * 1000,
    LOOKS = 4
};

/* ---- what an object says ---- */

static bool print_holder(const struct archive_lock_holder *holder, struct rd_buf *out)
{
    return rd_buf_printf(out, "{\n \"format\": 1,\n \"id\": ") && json_quote(out, holder->id) &&
           rd_buf_printf(out, ",\n \"owner\": ") && json_quote(out, holder->owner) &&
           rd_buf_printf(out, ",\n \"host\": ") && json_quote(out, holder->host) &&
           rd_buf_printf(out, ",\n \"space\": ") && json_quote(out, holder->space) &&
           rd_buf_printf(out,
                         ",\n \"pid\": %" PRIu64 ",\n \"since_ms\": %" PRId64
                         ",\n \"beat_ms\": %" PRId64 ",\n \"expire_ms\": %" PRIu64 "\n}\n",
                         holder->pid, holder->since_ms, holder->beat_ms, holder->expire_ms);
}

static void parse_member(struct json_members *in, const char *name, struct archive_lock_holder *ret)
{
    if (strcmp(name, "id") == 0)
        json_members_string(in, ret->id, sizeof ret->id);
    else if (strcmp(name, "owner") == 0)
        json_members_string(in, ret->owner, sizeof ret->owner);
    else if (strcmp(name, "host") == 0)
        json_members_string(in, ret->host, sizeof ret->host);
    else if (strcmp(name, "space") == 0)
        json_members_string(in, ret->space, sizeof ret->space);
    else if (strcmp(name, "pid") == 0)
        json_members_u64(in, &ret->pid);
    else if (strcmp(name, "since_ms") == 0)
        json_members_i64(in, &ret->since_ms);
    else if (strcmp(name, "beat_ms") == 0)
        json_members_i64(in, &ret->beat_ms);
    else if (strcmp(name, "expire_ms") == 0)
        json_members_u64(in, &ret->expire_ms);
    else
        json_members_skip(in);
}

/* What cannot be read has the default time and no owner: it is a lock all the same. */
static void parse_holder(struct rd_slice text, struct archive_lock_holder *ret)
{
    char name[40];
    struct json_members in;
    *ret = (struct archive_lock_holder){.pid = 0};
    json_members_open(&in, text);
    json_members_begin(&in, '{');
    while (json_members_next(&in, name, sizeof name))
        parse_member(&in, name, ret);
    if (!json_members_end(&in))
        *ret = (struct archive_lock_holder){.pid = 0};
    json_members_close(&in);
    if (ret->expire_ms == 0 || ret->expire_ms > EXPIRE_LIMIT_MS)
        ret->expire_ms = ARCHIVE_LOCK_EXPIRE_MS;
}

/* ---- the folder ---- */

struct entry {
    char name[ARCHIVE_NAME_MAX];
    uint64_t number;
    bool own;
};

struct entries {
    const struct archive_lock *lock;
    struct entry *e;
    size_t n, cap, n_own;
    uint64_t last; /* the greatest number */
    bool no_memory;
};

static void entries_done(struct entries *list)
{
    rd_free(list->e);
    *list = (struct entries){.n = 0};
}

static bool add_entry(struct entries *list, const struct entry *e)
{
    if (list->n == list->cap) {
        size_t cap = list->cap == 0 ? 4 : 2 * list->cap;
        struct entry *more = rd_realloc(list->e, cap * sizeof *more);
        if (more == NULL)
            return false;
        list->e = more;
        list->cap = cap;
    }
    list->e[list->n++] = *e;
    return true;
}

static bool is_id(const char *text)
{
    return strlen(text) == ARCHIVE_LOCK_ID - 1 &&
           strspn(text, "0123456789abcdef") == ARCHIVE_LOCK_ID - 1;
}

/* "NUMBER-ID". Everything else, such as the rest of an interrupted upload, is not a lock. */
static void on_object(void *arg, const struct archive_listed *object)
{
    struct entries *list = arg;
    const char *text = object->name + strlen(list->lock->folder) + 1;
    size_t digits = strspn(text, "0123456789");
    struct entry e = {.number = 0};
    for (size_t i = 0; i < digits && e.number < UINT64_MAX / 16; i++)
        e.number = 10 * e.number + (uint64_t)(text[i] - '0');
    if (digits == 0 || digits > 18 || text[digits] != '-' || !is_id(text + digits + 1))
        return;
    e.own = strcmp(text + digits + 1, list->lock->opts.self.id) == 0;
    snprintf(e.name, sizeof e.name, "%s", object->name);
    list->n_own += e.own;
    if (e.number > list->last)
        list->last = e.number;
    list->no_memory = !add_entry(list, &e) || list->no_memory;
}

/* *ret has entries of before, or none. entries_done() in any case. There is no limit: a run whose
 * removals fail leaves an object with each heartbeat. */
static bool read_folder(const struct archive_lock *lock, struct archive_store *store,
                        struct entries *ret, struct rd_err *err)
{
    entries_done(ret);
    ret->lock = lock;
    return store->ops->list(store, lock->folder, on_object, ret, err) &&
           (!ret->no_memory || rd_err_nomem(err, ret->n * sizeof *ret->e));
}

static void own_name(const struct archive_lock *lock, uint64_t number, char ret[ARCHIVE_NAME_MAX])
{
    snprintf(ret, ARCHIVE_NAME_MAX, "%s/%08" PRIu64 "-%s", lock->folder, number,
             lock->opts.self.id);
}

static bool put_own(struct archive_lock *lock, struct archive_store *store, uint64_t number,
                    struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    own_name(lock, number, name);
    lock->opts.self.beat_ms = lock->opts.wall_ms();
    bool ok = print_holder(&lock->opts.self, &text) || rd_err_nomem(err, text.len);
    ok = ok && archive_store_write(store, name, rd_buf_slice(&text), err);
    rd_buf_done(&text);
    return ok;
}

/* Removes the own objects but one; what remains is removed by the next renewal. */
static void remove_own(const struct entries *list, struct archive_store *store, uint64_t but)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->e[i].own && list->e[i].number != but)
            store->ops->remove(store, list->e[i].name, NULL);
}

/* ---- the holder of an object ---- */

/* The text of a lock that exists. Its holder may remove it meanwhile: then *ret_there is false. */
static bool read_text(struct archive_store *store, const char *name, struct rd_buf *ret,
                      bool *ret_there, struct rd_err *err)
{
    struct archive_object object;
    struct rd_err why = {0};
    if (archive_store_read(store, name, TEXT_MAX, ret, &why))
        return true;
    if (!store->ops->stat(store, name, &object, &why) || object.there) {
        rd_err_adopt(err, &why);
        return false;
    }
    *ret_there = false;
    return true;
}

/* *ret_there: whether the object exists. */
static bool read_holder(struct archive_store *store, const char *name,
                        struct archive_lock_holder *ret, bool *ret_there, struct rd_err *err)
{
    struct archive_object object;
    struct rd_buf text = {0};
    if (!store->ops->stat(store, name, &object, err))
        return false;
    *ret_there = object.there;
    if (!object.there)
        return true;
    if (object.size > TEXT_MAX) {
        parse_holder(rd_slice(NULL, 0), ret);
        return true;
    }
    bool ok = read_text(store, name, &text, ret_there, err);
    if (ok && *ret_there)
        parse_holder(rd_buf_slice(&text), ret);
    rd_buf_done(&text);
    return ok;
}

/* A lock of older versions is a line of text. */
static bool read_old(const struct archive_lock *lock, struct archive_store *store,
                     struct archive_lock_holder *ret, bool *ret_there, struct rd_err *err)
{
    struct archive_object object;
    struct rd_buf text = {0};
    *ret = (struct archive_lock_holder){.pid = 0};
    *ret_there = false;
    if (!store->ops->stat(store, lock->name, &object, err))
        return false;
    *ret_there = object.there;
    if (!object.there || object.size == 0 || object.size > TEXT_MAX)
        return true;
    bool ok = read_text(store, lock->name, &text, ret_there, err);
    if (ok && text.len > 0)
        snprintf(ret->owner, sizeof ret->owner, "%.*s",
                 (int)(text.len < ARCHIVE_OWNER_MAX ? text.len : ARCHIVE_OWNER_MAX - 1),
                 (const char *)text.ptr);
    rd_buf_done(&text);
    return ok;
}

static int64_t age_of(struct archive_store *store, const char *name)
{
    int64_t age_ms;
    bool known = store->ops->age != NULL && store->ops->age(store, name, &age_ms, NULL);
    return known ? age_ms : -1;
}

static bool locked(const struct archive_lock *lock, const struct archive_lock_holder *holder,
                   const char *more, struct rd_err *err)
{
    char quoted[2 * ARCHIVE_OWNER_MAX];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(holder->owner));
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "locked by %s%s",
               holder->owner[0] != '\0' ? quoted : "another process", more);
    rd_err_origin(err, lock->name);
    return false;
}

/* ---- whether the lock of another has expired ---- */

/* For how long an object of the same name has been seen. */
static uint64_t seen_for(const struct archive_lock *lock, const char *name, uint64_t now_ms)
{
    for (size_t i = 0; i < lock->n_seen; i++)
        if (strcmp(lock->seen[i].name, name) == 0)
            return now_ms - lock->seen[i].since_ms;
    return 0;
}

static bool same_id(const char *a, const char *b)
{
    size_t n = ARCHIVE_LOCK_ID - 1;
    return strcmp(a + strlen(a) - n, b + strlen(b) - n) == 0;
}

/* Whether the holder of an object was seen with a smaller number: it lives. */
static bool has_renewed(const struct archive_lock *lock, const char *name)
{
    for (size_t i = 0; i < lock->n_seen; i++)
        if (strcmp(lock->seen[i].name, name) != 0 && same_id(lock->seen[i].name, name))
            return true;
    return false;
}

static bool note_seen(struct archive_lock *lock, const struct entries *list, struct rd_err *err)
{
    uint64_t now_ms = lock->opts.now_ms();
    size_t n = 0;
    struct archive_lock_seen *seen = rd_calloc(list->n + 1, sizeof *seen);
    if (seen == NULL)
        return rd_err_nomem(err, list->n * sizeof *seen);
    for (size_t i = 0; i < list->n; i++) {
        if (list->e[i].own)
            continue;
        lock->seen_alive = lock->seen_alive || has_renewed(lock, list->e[i].name);
        seen[n].since_ms = now_ms - seen_for(lock, list->e[i].name, now_ms);
        snprintf(seen[n].name, sizeof seen[n].name, "%s", list->e[i].name);
        n++;
    }
    rd_free(lock->seen);
    lock->seen = seen;
    lock->n_seen = n;
    return true;
}

static enum archive_lock_state judge(struct archive_lock *lock, struct archive_store *store,
                                     const char *name, const struct archive_lock_holder *holder,
                                     int64_t *ret_age_ms)
{
    *ret_age_ms = age_of(store, name);
    if (lock->opts.gone != NULL && lock->opts.gone(holder))
        return ARCHIVE_LOCK_ENDED;
    if (seen_for(lock, name, lock->opts.now_ms()) >= holder->expire_ms)
        return ARCHIVE_LOCK_EXPIRED;
    if (*ret_age_ms < 0)
        return lock->seen_alive ? ARCHIVE_LOCK_ALIVE : ARCHIVE_LOCK_UNKNOWN;
    return (uint64_t)*ret_age_ms >= holder->expire_ms ? ARCHIVE_LOCK_EXPIRED : ARCHIVE_LOCK_ALIVE;
}

/* True if no other process has the lock: all objects of others are stale. *ret_gone: one of them
 * does not exist any more, so its holder has released or renewed the lock. */
static bool all_stale(struct archive_lock *lock, struct archive_store *store,
                      const struct entries *list, bool *ret_gone, struct rd_err *err)
{
    struct archive_lock_holder holder = {.pid = 0};
    int64_t age_ms;
    char more[60] = "";
    for (size_t i = 0; i < list->n; i++) {
        bool there = true;
        if (list->e[i].own)
            continue;
        if (!read_holder(store, list->e[i].name, &holder, &there, err))
            return false;
        *ret_gone = *ret_gone || !there;
        enum archive_lock_state state = judge(lock, store, list->e[i].name, &holder, &age_ms);
        if (!there || state == ARCHIVE_LOCK_EXPIRED || state == ARCHIVE_LOCK_ENDED)
            continue;
        if (age_ms >= 0)
            snprintf(more, sizeof more, ", last heartbeat %" PRId64 " s ago", age_ms / 1000);
        return locked(lock, &holder, more, err);
    }
    return true;
}

/* The lock of an older version: *ret_there is set, and it may be removed. */
static bool old_is_stale(struct archive_lock *lock, struct archive_store *store, bool *ret_there,
                         struct rd_err *err)
{
    struct archive_lock_holder holder;
    if (!read_old(lock, store, &holder, ret_there, err))
        return false;
    lock->is_old = *ret_there;
    if (!*ret_there ||
        (lock->kind == ARCHIVE_LOCK_SETS && age_of(store, lock->name) >= ARCHIVE_LOCK_OLD_MS))
        return true;
    return locked(lock, &holder, ", a version without heartbeats", err);
}

/* ---- taking it ---- */

static bool was_there(const struct entries *before, const char *name)
{
    for (size_t i = 0; i < before->n; i++)
        if (strcmp(before->e[i].name, name) == 0)
            return true;
    return false;
}

/* The first object of another process that came after `before`. */
static const struct entry *newcomer(const struct entries *before, const struct entries *now)
{
    for (size_t i = 0; i < now->n; i++)
        if (!now->e[i].own && !was_there(before, now->e[i].name))
            return &now->e[i];
    return NULL;
}

/* Of two that come at the same time, the one with the greater id withdraws, and the other one waits
 * for that. Neither has the lock while it sees the other. */
static bool is_alone(struct archive_lock *lock, struct archive_store *store,
                     const struct entries *before, struct entries *now, struct rd_err *err)
{
    struct archive_lock_holder holder = {.pid = 0};
    for (unsigned tries = 1;; tries++) {
        if (!read_folder(lock, store, now, err))
            return false;
        const struct entry *other = newcomer(before, now);
        if (now->n_own == 0)
            return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                              "the store does not list the lock that was written: it cannot be "
                              "locked");
        if (other == NULL)
            return true;
        const char *id = other->name + strlen(other->name) - (ARCHIVE_LOCK_ID - 1);
        if (tries < SETTLE_TRIES && strcmp(lock->opts.self.id, id) < 0) {
            if (lock->opts.wait_ms != NULL)
                lock->opts.wait_ms(SETTLE_MS);
            continue;
        }
        bool there;
        return read_holder(store, other->name, &holder, &there, err) &&
               locked(lock, &holder, "", err);
    }
}

/* Removes what the holder of the lock has proved to be stale. */
static bool remove_stale(struct archive_lock *lock, struct archive_store *store,
                         const struct entries *before, bool old, struct rd_err *err)
{
    for (size_t i = 0; i < before->n; i++)
        if (!before->e[i].own && !store->ops->remove(store, before->e[i].name, err))
            return false;
    remove_own(before, store, lock->number);
    return !old || store->ops->remove(store, lock->name, err);
}

static bool take_lock(struct archive_lock *lock, struct archive_store *store,
                      const struct entries *before, bool old, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct entries now = {.n = 0};
    uint64_t start_ms = lock->opts.now_ms();
    /* A number is not used again, so that others see each object as a new one. */
    lock->number = (lock->number > before->last ? lock->number : before->last) + 1;
    lock->opts.self.since_ms = lock->opts.wall_ms();
    own_name(lock, lock->number, name);
    bool ok = put_own(lock, store, lock->number, err) && is_alone(lock, store, before, &now, err) &&
              remove_stale(lock, store, before, old, err);
    entries_done(&now);
    if (ok) {
        lock->renewed_ms = start_ms;
        lock->held = true;
        lock->lost = false;
        lock->n_seen = 0;
        return true;
    }
    store->ops->remove(store, name, NULL);
    return false;
}

/* *list: what is there, and may be taken. *ret_old: there is a lock of an older version, too. */
static bool is_free(struct archive_lock *lock, struct archive_store *store, struct entries *list,
                    bool *ret_old, struct rd_err *err)
{
    bool gone = true, ok = old_is_stale(lock, store, ret_old, err);
    for (unsigned tries = 0; ok && gone && tries < LOOKS; tries++) {
        gone = false;
        ok = read_folder(lock, store, list, err) && note_seen(lock, list, err) &&
             all_stale(lock, store, list, &gone, err);
    }
    return ok;
}

static void try_objects(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    struct entries list = {.n = 0};
    bool old;
    if (is_free(lock, store, &list, &old, err))
        take_lock(lock, store, &list, old, err);
    entries_done(&list);
}

bool archive_lock_try(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    pthread_mutex_lock(&lock->mutex);
    lock->seen_alive = lock->is_old = false;
    if (store->ops->lock == NULL) {
        try_objects(lock, store, err);
    } else {
        lock->held = store->ops->lock(store, lock->name, lock->opts.self.owner, err);
        lock->seen_alive = !lock->held;
        lock->lost = lock->lost && !lock->held;
    }
    bool held = lock->held;
    pthread_mutex_unlock(&lock->mutex);
    return held;
}

/* ---- keeping it ---- */

static bool lose(struct archive_lock *lock, struct archive_store *store, const struct entries *list,
                 struct rd_err *err)
{
    lock->lost = true;
    if (list != NULL)
        remove_own(list, store, 0);
    rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET,
               "the lock was lost: it was not renewed in time, or it was removed");
    rd_err_origin(err, lock->name);
    return false;
}

/* Whether the own objects other than `but`, and no others, are there. */
static bool is_ours(const struct entries *list, uint64_t but)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!list->e[i].own)
            return false;
        n += list->e[i].number != but;
    }
    return n > 0;
}

/* The new object first: while the folder is listed, others see it. */
static bool renew_objects(struct archive_lock *lock, struct archive_store *store,
                          struct entries *list, struct rd_err *err)
{
    uint64_t start_ms = lock->opts.now_ms(), number = lock->number + 1;
    lock->number = number; /* if this fails, the next one has a number of its own */
    if (!put_own(lock, store, number, err) || !read_folder(lock, store, list, err))
        return false;
    if (!is_ours(list, number))
        return lose(lock, store, list, err);
    remove_own(list, store, number);
    lock->renewed_ms = start_ms;
    return true;
}

static bool renew(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    struct entries list = {.n = 0};
    if (!lock->held || lock->lost)
        return lose(lock, store, NULL, err);
    if (store->ops->lock != NULL)
        return store->ops->held(store, err) || lose(lock, store, NULL, err);
    bool ok = renew_objects(lock, store, &list, err);
    entries_done(&list);
    return ok;
}

bool archive_lock_renew(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    pthread_mutex_lock(&lock->mutex);
    bool ok = renew(lock, store, err);
    pthread_mutex_unlock(&lock->mutex);
    return ok;
}

static bool fresh(const struct archive_lock *lock, uint64_t max_ms)
{
    return lock->held && !lock->lost && lock->opts.now_ms() - lock->renewed_ms < max_ms;
}

bool archive_lock_check(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    pthread_mutex_lock(&lock->mutex);
    bool ok = (store->ops->lock == NULL && fresh(lock, lock->opts.self.expire_ms / 2)) ||
              renew(lock, store, err);
    pthread_mutex_unlock(&lock->mutex);
    return ok;
}

static bool confirm(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    struct entries list = {.n = 0};
    struct rd_err unread = {0};
    if (store->ops->lock != NULL || !lock->held || lock->lost)
        return renew(lock, store, err);
    bool known = read_folder(lock, store, &list, &unread);
    bool ours = known && (is_ours(&list, 0) || lose(lock, store, &list, err));
    entries_done(&list);
    if (known)
        return ours;
    if (fresh(lock, lock->opts.self.expire_ms))
        return true;
    rd_err_adopt(err, &unread);
    return false;
}

bool archive_lock_confirm(struct archive_lock *lock, struct archive_store *store,
                          struct rd_err *err)
{
    pthread_mutex_lock(&lock->mutex);
    bool ok = confirm(lock, store, err);
    pthread_mutex_unlock(&lock->mutex);
    return ok;
}

void archive_lock_drop(struct archive_lock *lock, struct archive_store *store)
{
    struct entries list = {.n = 0};
    pthread_mutex_lock(&lock->mutex);
    if (lock->held && store->ops->lock != NULL)
        store->ops->unlock(store);
    else if (lock->held && read_folder(lock, store, &list, NULL))
        remove_own(&list, store, 0);
    entries_done(&list);
    lock->held = false;
    pthread_mutex_unlock(&lock->mutex);
}

/* ---- the locks of others ---- */

static bool look_native(const struct archive_lock *lock, struct archive_store *store,
                        struct archive_lock_report *ret, struct rd_err *err)
{
    bool held;
    if (!store->ops->lock_owner(store, lock->name, ret->holder.owner, &held, err))
        return false;
    ret->state = held ? ARCHIVE_LOCK_ALIVE : ARCHIVE_LOCK_FREE;
    ret->n = held;
    return true;
}

/* The newest object counts. */
static bool look_newest(struct archive_lock *lock, struct archive_store *store,
                        const struct entries *list, struct archive_lock_report *ret,
                        struct rd_err *err)
{
    bool there;
    uint64_t last = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct archive_lock_holder holder;
        if (list->e[i].number < last)
            continue;
        if (!read_holder(store, list->e[i].name, &holder, &there, err))
            return false;
        if (!there)
            continue;
        last = list->e[i].number;
        ret->holder = holder;
        ret->state = judge(lock, store, list->e[i].name, &holder, &ret->age_ms);
        ret->n = list->n;
    }
    return true;
}

static bool look_objects(struct archive_lock *lock, struct archive_store *store,
                         struct archive_lock_report *ret, struct rd_err *err)
{
    struct entries list = {.n = 0};
    bool there, ok = read_folder(lock, store, &list, err) && note_seen(lock, &list, err) &&
                     look_newest(lock, store, &list, ret, err);
    entries_done(&list);
    if (!ok || ret->n > 0)
        return ok;
    if (!read_old(lock, store, &ret->holder, &there, err))
        return false;
    ret->state = there ? ARCHIVE_LOCK_OLD : ARCHIVE_LOCK_FREE;
    ret->age_ms = there ? age_of(store, lock->name) : -1;
    ret->n = there;
    return true;
}

bool archive_lock_look(struct archive_lock *lock, struct archive_store *store,
                       struct archive_lock_report *ret, struct rd_err *err)
{
    *ret = (struct archive_lock_report){.age_ms = -1};
    lock->seen_alive = false;
    return store->ops->lock != NULL ? look_native(lock, store, ret, err)
                                    : look_objects(lock, store, ret, err);
}

bool archive_lock_break(struct archive_lock *lock, struct archive_store *store, struct rd_err *err)
{
    struct entries list = {.n = 0};
    bool ok = true;
    do { /* a holder that lives may renew it meanwhile, once */
        ok = store->ops->lock != NULL || read_folder(lock, store, &list, err);
        for (size_t i = 0; ok && i < list.n; i++)
            ok = store->ops->remove(store, list.e[i].name, err);
    } while (ok && list.n > 0);
    entries_done(&list);
    return ok && store->ops->remove(store, lock->name, err);
}

bool archive_lock_init(struct archive_lock *lock, const char *target, enum archive_lock_kind kind,
                       const struct archive_lock_opts *opts, struct rd_err *err)
{
    static const char *const names[] = {"lock", "stream/lock", "merge.lock"};
    static const char *const folders[] = {"sets", "stream", "merge"};
    *lock = (struct archive_lock){.opts = *opts, .kind = kind};
    int len = snprintf(lock->name, sizeof lock->name, "%s/%s", target, names[kind]);
    int more = snprintf(lock->folder, sizeof lock->folder, "%s/locks/%s", target, folders[kind]);
    if (lock->opts.self.expire_ms == 0)
        lock->opts.self.expire_ms = ARCHIVE_LOCK_EXPIRE_MS;
    pthread_mutex_init(&lock->mutex, NULL);
    return (len > 0 && more > 0 && (size_t)more < sizeof lock->folder) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of the target is too long");
}

void archive_lock_done(struct archive_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
    rd_free(lock->seen);
}
