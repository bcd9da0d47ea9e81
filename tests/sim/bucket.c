#include "tests/sim/bucket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/chance.h"

struct member {
    struct archive_store store;
    struct bucket *bucket;
    struct bucket_faults *faults;
    struct bucket_lock *lock; /* that it holds; NULL: none */
};

static struct member *member_of(struct archive_store *store)
{
    return (struct member *)store;
}

/* ---- faults ---- */

uint64_t bucket_draw(struct bucket_faults *f, uint64_t n)
{
    return chance_below(&f->seed, n);
}

enum fate { WORKS, FAILS, FAILS_LATE };

bool bucket_dies(struct bucket_faults *f)
{
    if (!f->dead && f->deaths_per_mille > 0 && bucket_draw(f, 1000) < f->deaths_per_mille)
        f->dead = true;
    return f->dead;
}

static enum fate draw_fate(struct bucket_faults *f)
{
    if (f->between != NULL)
        f->between(f->ctx);
    bool late = bucket_draw(f, 2) == 0;
    if (f->dead)
        late = false;
    else if (bucket_draw(f, 1000) < f->deaths_per_mille)
        f->dead = true;
    else if (bucket_draw(f, 1000) >= f->per_mille)
        return WORKS;
    f->n_failed++;
    f->n_late += late;
    return late ? FAILS_LATE : FAILS;
}

static bool failed(const char *name, struct rd_err *err)
{
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no answer");
    rd_err_origin(err, name);
    return false;
}

/* ---- objects ---- */

struct bucket_object *bucket_find(struct bucket *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->objects[i].name, name) == 0)
            return &b->objects[i];
    return NULL;
}

/* NULL: there is one with the name, or no space. */
static struct bucket_object *add(struct bucket *b, const char *name, const struct rd_buf *bytes)
{
    if (b->n == BUCKET_OBJECTS || bucket_find(b, name) != NULL)
        return NULL;
    struct bucket_object *object = &b->objects[b->n++];
    *object = (struct bucket_object){.time_ms = b->now_ms != NULL ? b->now_ms() : 0,
                                     .version = ++b->n_versions};
    snprintf(object->name, sizeof object->name, "%s", name);
    rd_buf_add(&object->bytes, bytes->ptr, bytes->len);
    return object;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), n = strlen(end);
    return len >= n && strcmp(name + len - n, end) == 0;
}

/* One call passes, or all that are needed by objects whose names have this end. */
static void pass(struct bucket *b, const char *all_with)
{
    for (size_t i = 0; i < b->n_late;) {
        struct bucket_late *late = &b->late[i];
        bool now = all_with != NULL && ends_with(late->object.name, all_with);
        if (!now && (all_with != NULL || --late->calls > 0)) {
            i++;
            continue;
        }
        struct bucket_object *object = add(b, late->object.name, &late->object.bytes);
        if (object != NULL)
            object->late = true;
        rd_buf_done(&late->object.bytes);
        *late = b->late[--b->n_late];
    }
}

void bucket_settle(struct bucket *bucket, const char *end)
{
    pass(bucket, end);
}

/* A request that times out may be executed all the same. */
static void delay(struct bucket *b, struct bucket_faults *f, const char *name,
                  const struct rd_buf *bytes)
{
    enum { CALLS = 60 };
    if (f->delays == 0 || b->n_late == BUCKET_LATE || bucket_draw(f, f->delays) != 0)
        return;
    struct bucket_late *late = &b->late[b->n_late++];
    *late = (struct bucket_late){.calls = 1 + (unsigned)bucket_draw(f, CALLS)};
    snprintf(late->object.name, sizeof late->object.name, "%s", name);
    rd_buf_add(&late->object.bytes, bytes->ptr, bytes->len);
    f->n_delayed++;
}

static void erase(struct bucket *b, struct bucket_object *object)
{
    rd_buf_done(&object->bytes);
    *object = b->objects[--b->n];
}

/* ---- put ---- */

struct put {
    struct member *member;
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf bytes;
};

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    if (draw_fate(put->member->faults) != WORKS)
        return failed(put->name, err);
    return rd_buf_add(&put->bytes, ptr, len) || rd_err_nomem(err, len);
}

static bool finish(struct put *put, struct rd_err *err)
{
    struct bucket *b = put->member->bucket;
    enum fate fate = draw_fate(put->member->faults);
    if (bucket_find(b, put->name) != NULL)
        return fate == WORKS ? archive_store_set_exists(err, put->name) : failed(put->name, err);
    if (fate != FAILS)
        add(b, put->name, &put->bytes);
    else
        delay(b, put->member->faults, put->name, &put->bytes);
    if (fate == WORKS)
        return true;
    failed(put->name, err);
    return archive_store_set_unknown(err);
}

/* A process that dies cannot remove what it has written so far. */
static void give_up(struct put *put)
{
    struct bucket_faults *f = put->member->faults;
    char remains[ARCHIVE_NAME_MAX + 4];
    snprintf(remains, sizeof remains, "%s.new", put->name);
    if (!f->dead || bucket_draw(f, 2) != 0 || strlen(remains) >= ARCHIVE_NAME_MAX)
        return;
    struct bucket_object *object = add(put->member->bucket, remains, &put->bytes);
    if (object != NULL)
        object->partial = true;
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    bool ok = commit && finish(put, err);
    if (!commit)
        give_up(put);
    rd_buf_done(&put->bytes);
    rd_free(put);
    return ok || !commit;
}

static bool bucket_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = put_write, .close = put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 512, .origin = name);
    struct member *member = member_of(store);
    pass(member->bucket, NULL);
    if (draw_fate(member->faults) != WORKS)
        return failed(name, err);
    if (bucket_find(member->bucket, name) != NULL)
        return archive_store_set_exists(err, name);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->member = member;
    snprintf(put->name, sizeof put->name, "%s", name);
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- get, stat, list, remove ---- */

struct copy {
    struct rd_buf bytes;
    size_t at;
    struct bucket_faults *faults;
};

static enum rd_src_status copy_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct copy *copy = impl;
    size_t left = copy->bytes.len - copy->at, n = left < cap ? left : cap;
    *ret_len = 0;
    if (draw_fate(copy->faults) != WORKS) {
        failed("the object", err);
        return RD_SRC_FAIL;
    }
    if (n > 0)
        memcpy(buf, copy->bytes.ptr + copy->at, n);
    copy->at += n;
    *ret_len = n;
    return n > 0 ? RD_SRC_OK : RD_SRC_END;
}

static void copy_close(void *impl)
{
    struct copy *copy = impl;
    rd_buf_done(&copy->bytes);
    rd_free(copy);
}

static bool bucket_get(struct archive_store *store, const char *name, struct rd_src **ret,
                       struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = copy_read, .close = copy_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = name);
    struct member *member = member_of(store);
    pass(member->bucket, NULL);
    bool works = draw_fate(member->faults) == WORKS;
    const struct bucket_object *object = bucket_find(member->bucket, name);
    if (!works)
        return failed(name, err);
    if (object == NULL) {
        return archive_store_set_missing(err, name);
    }
    struct copy *copy = rd_calloc(1, sizeof *copy);
    if (copy == NULL || !rd_buf_add(&copy->bytes, object->bytes.ptr, object->bytes.len)) {
        rd_free(copy);
        return rd_err_nomem(err, object->bytes.len);
    }
    copy->faults = member->faults;
    return rd_src_new(ret, &ops, copy, &opts, err);
}

static bool bucket_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                        struct rd_err *err)
{
    struct member *member = member_of(store);
    pass(member->bucket, NULL);
    bool works = draw_fate(member->faults) == WORKS;
    const struct bucket_object *object = bucket_find(member->bucket, name);
    if (!works)
        return failed(name, err);
    *ret = (struct archive_object){.there = object != NULL,
                                   .size = object != NULL ? object->bytes.len : 0};
    return true;
}

static void show(const struct bucket_object *object, archive_each_fn *each, void *arg)
{
    char version[24];
    const struct archive_listed listed = {
        .name = object->name, .size = object->bytes.len, .version = version};
    snprintf(version, sizeof version, "%" PRIu64, object->version);
    each(arg, &listed);
}

static bool bucket_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                        void *arg, struct rd_err *err)
{
    struct member *member = member_of(store);
    const struct bucket *b = member->bucket;
    size_t len = strlen(folder);
    pass(member->bucket, NULL);
    if (draw_fate(member->faults) != WORKS)
        return failed(folder, err);
    bool is_short = bucket_draw(member->faults, 1000) < member->faults->per_mille;
    member->faults->n_short += is_short;
    for (size_t i = 0; i < b->n; i++)
        if (strncmp(b->objects[i].name, folder, len) == 0 && b->objects[i].name[len] == '/' &&
            (!is_short || bucket_draw(member->faults, 4) != 0))
            show(&b->objects[i], each, arg);
    return true;
}

static bool bucket_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    struct member *member = member_of(store);
    pass(member->bucket, NULL);
    enum fate fate = draw_fate(member->faults);
    struct bucket_object *object = bucket_find(member->bucket, name);
    if (fate != FAILS && object != NULL)
        erase(member->bucket, object);
    return fate == WORKS || failed(name, err);
}

static bool bucket_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                       struct rd_err *err)
{
    struct member *member = member_of(store);
    pass(member->bucket, NULL);
    bool works = draw_fate(member->faults) == WORKS;
    const struct bucket_object *object = bucket_find(member->bucket, name);
    if (!works || object == NULL || member->bucket->now_ms == NULL)
        return failed(name, err);
    *ret_ms = member->bucket->now_ms() - object->time_ms;
    return true;
}

/* ---- locks ---- */

static struct bucket_lock *lock_named(struct bucket *b, const char *name)
{
    for (size_t i = 0; i < BUCKET_LOCKS; i++)
        if (b->locks[i].name[0] == '\0' || strcmp(b->locks[i].name, name) == 0)
            return &b->locks[i];
    return NULL;
}

static bool bucket_lock(struct archive_store *store, const char *name, const char *owner,
                        struct rd_err *err)
{
    struct member *member = member_of(store);
    struct bucket_lock *lock = lock_named(member->bucket, name);
    (void)owner;
    if (lock == NULL || draw_fate(member->faults) != WORKS)
        return failed(name, err);
    if (member->bucket->occupied || (lock->life != 0 && lock->life != member->faults->life))
        return rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "locked by another life");
    snprintf(lock->name, sizeof lock->name, "%s", name);
    lock->life = member->faults->life;
    member->lock = lock;
    return true;
}

static bool bucket_held(struct archive_store *store, struct rd_err *err)
{
    const struct member *member = member_of(store);
    return (!member->faults->dead && member->lock != NULL &&
            member->lock->life == member->faults->life) ||
           rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "not locked any more");
}

static void bucket_unlock(struct archive_store *store)
{
    struct member *member = member_of(store);
    if (member->lock != NULL && member->lock->life == member->faults->life)
        member->lock->life = 0;
    member->lock = NULL;
}

static bool bucket_lock_owner(struct archive_store *store, const char *name,
                              char ret[ARCHIVE_OWNER_MAX], bool *ret_held, struct rd_err *err)
{
    const struct bucket_lock *lock = lock_named(member_of(store)->bucket, name);
    (void)err;
    *ret_held = member_of(store)->bucket->occupied || (lock != NULL && lock->life != 0);
    snprintf(ret, ARCHIVE_OWNER_MAX, "a life");
    return true;
}

/* ---- the whole ---- */

static void bucket_close(struct archive_store *store)
{
    rd_free(store);
}

struct archive_store *bucket_open(struct bucket *bucket, struct bucket_faults *faults)
{
    static const struct archive_store_ops ops = {.put = bucket_put,
                                                 .get = bucket_get,
                                                 .stat = bucket_stat,
                                                 .list = bucket_list,
                                                 .remove = bucket_remove,
                                                 .age = bucket_age,
                                                 .lock = bucket_lock,
                                                 .held = bucket_held,
                                                 .unlock = bucket_unlock,
                                                 .lock_owner = bucket_lock_owner,
                                                 .close = bucket_close};
    struct member *member = rd_calloc(1, sizeof *member);
    if (member == NULL)
        return NULL;
    member->store.ops = &ops;
    snprintf(member->store.origin, sizeof member->store.origin, "a bucket");
    member->bucket = bucket;
    member->faults = faults;
    return &member->store;
}

void bucket_bury(struct bucket *bucket, const struct bucket_faults *faults)
{
    for (size_t i = 0; i < BUCKET_LOCKS; i++)
        if (bucket->locks[i].life == faults->life)
            bucket->locks[i].life = 0;
}

void bucket_done(struct bucket *bucket)
{
    bucket_settle(bucket, "");
    while (bucket->n > 0)
        erase(bucket, &bucket->objects[0]);
}
