#include "jobs/omitted.h"

#include "base/endian.h"
#include "base/show.h"

#include <stdio.h>

enum { PLACES_MEMORY = 1 << 20, PLACE_LEN = 16, PIECE = 16 * 1024 };

void omitted_init(struct omitted *o, const struct rd_watch *watch, bool keep)
{
    *o = (struct omitted){.watch = watch, .keep = keep};
    pthread_mutex_init(&o->lock, NULL);
}

void omitted_done(struct omitted *o)
{
    rd_sink_abort(o->to);
    sort_done(&o->places);
    spool_done(&o->texts);
    pthread_mutex_destroy(&o->lock);
}

/* ---- counts and examples ---- */

static void count(struct omitted *o, const struct rdb_omission *omission)
{
    struct omitted_reason *r = o->reasons;
    size_t i = 0;
    while (i < o->n_reasons &&
           (r[i].what != omission->what || strcmp(r[i].text, omission->reason) != 0))
        i++;
    if (i == o->n_reasons && i < OMITTED_REASONS) {
        r[i] = (struct omitted_reason){.what = omission->what};
        snprintf(r[i].text, sizeof r[i].text, "%s", omission->reason);
        o->n_reasons++;
    } else if (i == OMITTED_REASONS) {
        i--;
        snprintf(r[i].text, sizeof r[i].text, "other reasons");
    }
    r[i].n++;
}

/* The position inside the key: `member "m" of `. */
static void describe_element(const struct rdb_omission *omission, char *dst, size_t size)
{
    struct rd_shown_name element = rd_show_quote(omission->element);
    bool stream = omission->type != NULL && omission->type->kind == RDB_KIND_STREAM;
    dst[0] = '\0';
    switch (omission->what) {
    case RDB_OMITTED_FIELD_EXPIRY:
        snprintf(dst, size, "expiry of field %s of ", element.s);
        break;
    case RDB_OMITTED_ELEMENT:
        snprintf(dst, size, "%s %s of ", stream ? "entry" : "member", element.s);
        break;
    case RDB_OMITTED_PENDING:
        snprintf(dst, size, "pending entry %s of group %s of ", element.s,
                 rd_show_quote(omission->group).s);
        break;
    case RDB_OMITTED_PRODUCER:
        snprintf(dst, size, "producer %s of ", element.s);
        break;
    case RDB_OMITTED_KEY_METADATA:
        snprintf(dst, size, "metadata of ");
        break;
    case RDB_OMITTED_FUNCTION:
        snprintf(dst, size, "function library %s", element.s);
        break;
    case RDB_OMITTED_MODULE_AUX:
        snprintf(dst, size, "data of module %s", element.s);
        break;
    case RDB_OMITTED_SLOT_IMPORT:
        snprintf(dst, size, "slot import %s", element.s);
        break;
    case RDB_OMITTED_MEMBER_EXPIRY:
        snprintf(dst, size, "expiry of member %s of ", element.s);
        break;
    case RDB_OMITTED_STREAM_SETTINGS:
        snprintf(dst, size, "settings of ");
        break;
    case RDB_OMITTED_KEY:
        break;
    }
}

static void describe(const struct omitted *o, const struct rdb_omission *omission, char *dst,
                     size_t size)
{
    char element[OMITTED_TEXT_MAX];
    char key[OMITTED_TEXT_MAX] = "";
    describe_element(omission, element, sizeof element);
    if (omission->type != NULL)
        snprintf(key, sizeof key, "%s %s in db %llu", rdb_kind_name(omission->type->kind),
                 rd_show_quote(omission->key).s, (unsigned long long)omission->db);
    snprintf(dst, size, "%s%s%s%s: %s", element, key, o->file != NULL ? " of " : "",
             o->file != NULL ? rd_show_plain(rd_slice_str(o->file)).s : "", omission->reason);
}

/* Keeps the first ones in the input. Omissions of the same order arrive in order. */
static void show_omission(struct omitted *o, const struct rdb_omission *omission, uint64_t order)
{
    size_t at = o->n_shown;
    while (at > 0 && o->shown[at - 1].order > order)
        at--;
    if (at == OMITTED_SHOWN)
        return;
    if (o->n_shown < OMITTED_SHOWN)
        o->n_shown++;
    memmove(&o->shown[at + 1], &o->shown[at], (o->n_shown - at - 1) * sizeof o->shown[0]);
    o->shown[at].order = order;
    describe(o, omission, o->shown[at].text, sizeof o->shown[at].text);
}

/* ---- for --json ---- */

static void put_object(const struct omitted *o, const struct rdb_omission *omission,
                       struct rd_sink *to)
{
    struct json_write json;
    rd_sink_byte(to, ',');
    json_init(&json, to);
    json_obj(&json);
    json_put_str(&json, "what", rdb_omitted_word(omission->what));
    json_put_str(&json, "reason", omission->reason);
    if (o->file != NULL)
        json_put_str(&json, "file", o->file);
    if (omission->type != NULL) {
        json_put_uint(&json, "db", omission->db);
        json_key(&json, "key");
        json_bytes(&json, omission->key);
        json_put_str(&json, "type", rdb_kind_name(omission->type->kind));
    }
    if (omission->group.ptr != NULL) {
        json_key(&json, "group");
        json_bytes(&json, omission->group);
    }
    if (omission->element.ptr != NULL) {
        json_key(&json, "element");
        json_bytes(&json, omission->element);
    }
    json_end(&json);
}

static bool begin_store(struct omitted *o, struct rd_err *err)
{
    return o->to != NULL ||
           (sort_init(&o->places, PLACES_MEMORY, err) && spool_sink(&o->texts, &o->to, err));
}

static bool store(struct omitted *o, const struct rdb_omission *omission, uint64_t order,
                  struct rd_err *err)
{
    uint8_t key[PLACE_LEN], place[PLACE_LEN];
    if (!begin_store(o, err))
        return false;
    rd_put_be64(key, order);
    rd_put_be64(key + 8, o->n);
    rd_put_be64(place, rd_sink_offset(o->to));
    put_object(o, omission, o->to);
    rd_put_be64(place + 8, rd_sink_offset(o->to));
    if (o->to->failed)
        rd_err_adopt(err, rd_sink_err(o->to));
    return !o->to->failed &&
           sort_add(&o->places, rd_slice(key, sizeof key), rd_slice(place, sizeof place), err);
}

void omitted_add(void *ctx, const struct rdb_omission *omission)
{
    struct omitted *o = ctx;
    uint64_t order = o->file != NULL ? 0 : omission->offset;
    pthread_mutex_lock(&o->lock);
    count(o, omission);
    show_omission(o, omission, order);
    if (o->keep && o->err.code == RD_ERR_OK)
        store(o, omission, order, &o->err);
    o->n++;
    pthread_mutex_unlock(&o->lock);
}

bool omitted_end(struct omitted *o, struct rd_err *err)
{
    if (o->to != NULL && o->err.code == RD_ERR_OK) {
        struct rd_sink *to = o->to;
        o->to = NULL;
        if (rd_sink_close(to, &o->err))
            sort_begin(&o->places, &o->err);
    }
    rd_err_adopt(err, &o->err);
    return o->err.code == RD_ERR_OK;
}

/* Copies [from, to) of the texts. */
static bool copy_texts(struct omitted *o, uint64_t from, uint64_t to, struct rd_sink *out,
                       struct rd_err *err)
{
    uint8_t piece[PIECE];
    while (from < to) {
        size_t n = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        if (!spool_read(&o->texts, from, piece, n, err))
            return false;
        rd_sink_write(out, piece, n);
        from += n;
    }
    return true;
}

/* Copies the objects in order. Adjacent objects are copied together. */
static bool put_all(struct omitted *o, struct rd_sink *out, struct rd_err *err)
{
    struct rd_slice key, place;
    uint64_t from = 1, to = 1; /* without the first comma */
    bool end = o->n == 0, first = true;
    while (!end) {
        if (!sort_next(&o->places, &key, &place, &end, err))
            return false;
        uint64_t next = end ? 0 : rd_get_be64(place.ptr);
        if (!end && (first || next == to)) {
            from = first ? next + 1 : from;
            to = rd_get_be64(place.ptr + 8);
            first = false;
            continue;
        }
        if (!copy_texts(o, from, to, out, err))
            return false;
        from = next;
        to = end ? 0 : rd_get_be64(place.ptr + 8);
    }
    return true;
}

static bool put_json(struct omitted *o, struct json_write *json, struct rd_err *err)
{
    json_put_uint(json, "left_out", o->n);
    json_key(json, "omitted_by_reason");
    json_array(json);
    for (size_t i = 0; i < o->n_reasons; i++) {
        json_obj(json);
        json_put_str(json, "what", rdb_omitted_word(o->reasons[i].what));
        json_put_str(json, "reason", o->reasons[i].text);
        json_put_uint(json, "count", o->reasons[i].n);
        json_end(json);
    }
    json_end(json);
    json_key(json, "omitted");
    json_array(json);
    bool ok = put_all(o, json->out, err);
    json_end(json);
    return ok;
}

/* ---- text output ---- */

static const char *noun(enum rdb_omitted what, bool one)
{
    static const char *const nouns[][2] = {
        [RDB_OMITTED_KEY] = {"keys", "key"},
        [RDB_OMITTED_FIELD_EXPIRY] = {"hash field expiries", "hash field expiry"},
        [RDB_OMITTED_ELEMENT] = {"elements", "element"},
        [RDB_OMITTED_PENDING] = {"pending entries", "pending entry"},
        [RDB_OMITTED_PRODUCER] = {"producers", "producer"},
        [RDB_OMITTED_KEY_METADATA] = {"metadata records", "metadata record"},
        [RDB_OMITTED_FUNCTION] = {"functions", "function"},
        [RDB_OMITTED_MODULE_AUX] = {"module records", "module record"},
        [RDB_OMITTED_SLOT_IMPORT] = {"slot imports", "slot import"},
        [RDB_OMITTED_MEMBER_EXPIRY] = {"member expiries", "member expiry"},
        [RDB_OMITTED_STREAM_SETTINGS] = {"stream settings", "stream setting"},
    };
    return nouns[what][one];
}

bool omitted_report(struct omitted *o, struct json_write *json, struct rd_err *err)
{
    for (size_t i = 0; i < o->n_shown; i++)
        rd_watch_warn(o->watch, "omitted: %s", o->shown[i].text);
    if (o->n > o->n_shown)
        rd_watch_warn(o->watch, "omitted: … and %s more", rd_show_count(o->n - o->n_shown).s);
    for (size_t i = 0; i < o->n_reasons; i++) {
        const struct omitted_reason *r = &o->reasons[i];
        rd_watch_warn(o->watch, "omitted: %s %s (%s)", rd_show_count(r->n).s,
                      noun(r->what, r->n == 1), r->text);
    }
    return json == NULL || put_json(o, json, err);
}

void omitted_hint(const struct rd_watch *watch, const char *server, const struct rd_err *err)
{
    if (err->reason.id == RDB_REASON_OMISSION)
        rd_watch_hint(watch,
                      "--lossy omits what %s cannot hold, here this %s, and names each omission",
                      server != NULL ? server : "the target",
                      noun((enum rdb_omitted)err->reason.args[0], true));
}
