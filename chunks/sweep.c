#include "base/mem.h"
#include "chunks/rewrite_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- marks ---- */

static bool mark_name(char ret[ARCHIVE_NAME_MAX], const struct chunks_sweep *s, const char *pack,
                      struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/chunks/%s.doomed", s->repo->target, pack);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

static bool mark(struct chunks_sweep *s, const char *pack, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX], text[32];
    snprintf(text, sizeof text, "%" PRId64 "\n", s->now_ms);
    s->n_doomed++;
    return mark_name(name, s, pack, err) && archive_repo_check_lock(s->repo, err) &&
           archive_store_write(s->repo->store, name, rd_slice_str(text), err);
}

static bool unmark(struct chunks_sweep *s, const char *pack, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return mark_name(name, s, pack, err) && s->repo->store->ops->remove(s->repo->store, name, err);
}

/* Whether the time of grace has passed since the pack was marked. A mark that cannot be understood
 * is made again. */
static bool is_over(struct chunks_sweep *s, const char *pack, bool *ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    bool ok = mark_name(name, s, pack, err) &&
              archive_store_read(s->repo->store, name, 64, &text, err) &&
              (rd_buf_add_byte(&text, '\0') || rd_err_nomem(err, 1));
    int64_t since_ms = ok ? strtoll((const char *)text.ptr, NULL, 10) : 0;
    *ret = since_ms > 0 && since_ms <= s->now_ms && s->now_ms - since_ms >= s->grace_ms;
    bool wrong = ok && (since_ms <= 0 || since_ms > s->now_ms);
    rd_buf_done(&text);
    return ok && (!wrong || (unmark(s, pack, err) && mark(s, pack, err)));
}

/* ---- packs ---- */

/* The part of a name before the suffix. False: it has another suffix. */
static bool is_a(const struct chunks_object *object, const char *suffix,
                 char ret[CHUNKS_PACK_NAME_MAX])
{
    size_t len = strlen(object->name), tail = strlen(suffix);
    if (len <= tail || len - tail >= CHUNKS_PACK_NAME_MAX ||
        strcmp(object->name + len - tail, suffix) != 0)
        return false;
    memcpy(ret, object->name, len - tail);
    ret[len - tail] = '\0';
    return true;
}

static uint64_t live_of(const struct chunks_sweep *s, const char *pack)
{
    const struct chunks_name *name = chunks_names_find(s->usage->names, pack);
    return name != NULL ? name->live : 0;
}

/* A pack is named after the set that wrote it. If the store has that set, but did not list it, what
 * the set needs is not known. Every set has a pack, or a list of what became of it. */
static bool is_listed(const struct chunks_sweep *s, const char *id)
{
    for (size_t i = 0; i < s->sets->n; i++)
        if (strcmp(s->sets->sets[i].id, id) == 0)
            return true;
    return false;
}

static bool prove_lists(struct chunks_sweep *s, struct rd_err *err)
{
    char last[ARCHIVE_ID_MAX] = "";
    for (size_t i = 0; i < s->usage->inventory->n; i++) {
        struct archive_set set = {.incomplete = false};
        int64_t time_ms;
        size_t len = strcspn(s->usage->inventory->objects[i].name, ".");
        if (len >= sizeof set.id)
            continue;
        memcpy(set.id, s->usage->inventory->objects[i].name, len);
        if (strcmp(set.id, last) == 0 || !archive_id_time(set.id, &time_ms) || is_listed(s, set.id))
            continue;
        memcpy(last, set.id, sizeof last);
        if (!archive_set_gone(s->repo, &set))
            return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                              "the list of the store left out the set %s, or it cannot be known "
                              "whether it is gone: no chunks were removed",
                              set.id);
    }
    return true;
}

static bool remove_pack(struct chunks_sweep *s, const struct chunks_object *object,
                        const char *pack, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    if (!archive_repo_check_lock(s->repo, err) ||
        !chunks_pack_object(name, s->repo->target, pack, err) ||
        !s->repo->store->ops->remove(s->repo->store, name, err) || !unmark(s, pack, err))
        return false;
    s->n_removed++;
    s->bytes_removed += object->bytes;
    return true;
}

static bool sweep_pack(struct chunks_sweep *s, const struct chunks_object *object, const char *pack,
                       bool *proved, struct rd_err *err)
{
    bool marked = chunks_inventory_find(s->usage->inventory, pack, ".doomed") != NULL;
    bool over = false;
    if (live_of(s, pack) > 0)
        return !marked || unmark(s, pack, err);
    if (!*proved && !prove_lists(s, err))
        return false;
    *proved = true;
    if (!marked && !mark(s, pack, err))
        return false;
    if (marked || s->grace_ms == 0)
        if (!is_over(s, pack, &over, err))
            return false;
    return !over || remove_pack(s, object, pack, err);
}

/* A list of moves is needed while a recipe names the pack, and as long as the pack is there. */
static bool sweep_moves(struct chunks_sweep *s, const char *pack, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    const struct chunks_name *known = chunks_names_find(s->usage->names, pack);
    if ((known != NULL && known->named) ||
        chunks_inventory_find(s->usage->inventory, pack, ".pack") != NULL)
        return true;
    return prove_lists(s, err) && archive_repo_check_lock(s->repo, err) &&
           chunks_moves_object(name, s->repo->target, pack, err) &&
           s->repo->store->ops->remove(s->repo->store, name, err);
}

/* A mark whose pack is gone. */
static bool sweep_mark(struct chunks_sweep *s, const char *pack, struct rd_err *err)
{
    return chunks_inventory_find(s->usage->inventory, pack, ".pack") != NULL ||
           unmark(s, pack, err);
}

bool chunks_sweep(struct chunks_sweep *s, struct rd_err *err)
{
    char pack[CHUNKS_PACK_NAME_MAX];
    const struct chunks_inventory *inv = s->usage->inventory;
    bool proved = false, ok = true;
    for (size_t i = 0; ok && i < inv->n; i++) {
        const struct chunks_object *object = &inv->objects[i];
        if (is_a(object, ".pack", pack))
            ok = sweep_pack(s, object, pack, &proved, err);
        else if (is_a(object, ".moved", pack))
            ok = sweep_moves(s, pack, err);
        else if (is_a(object, ".doomed", pack))
            ok = sweep_mark(s, pack, err);
    }
    return ok && chunks_rewrite(s, err);
}

/* ---- remains ---- */

bool chunks_clean(struct archive_repo *repo, struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX], name[2 * ARCHIVE_NAME_MAX];
    struct chunks_inventory inv;
    if (!chunks_inventory_read(repo, &inv, err))
        return false;
    bool ok = true;
    snprintf(folder, sizeof folder, "%s/chunks", repo->target);
    for (size_t i = 0; ok && i < inv.n; i++) {
        size_t len = strlen(inv.objects[i].name);
        if (len < 4 || strcmp(inv.objects[i].name + len - 4, ".new") != 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", folder, inv.objects[i].name);
        ok = archive_repo_check_lock(repo, err) && repo->store->ops->remove(repo->store, name, err);
    }
    if (ok && repo->store->ops->clean != NULL && archive_repo_check_lock(repo, NULL))
        repo->store->ops->clean(repo->store, folder);
    chunks_inventory_done(&inv);
    return ok;
}
