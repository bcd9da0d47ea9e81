/* Compares two values part by part.
 *
 *     parts   key: kind (1)  name (16)     value: side (1)  index (8)  expiry (8)  content (16)
 */
#include "jobs/diff_impl.h"

#include "base/endian.h"
#include "base/mem.h"

#include <stdio.h>

/* The number of bytes shown before the first byte that differs. */
enum { STRING_BEFORE = 20 };

enum { PART_KEY = 17, PART_VALUE = 33, PARTS_MEMORY = DIFF_MEMORY / 4 };

/* Moves the reader of a side to the value of the key. */
static bool go_to(struct diff *diff, const struct diff_found *found, enum diff_side side,
                  struct rd_err *err)
{
    struct rdb_event key;
    return again_seek(&diff->in[side], found->key[side].record, found->db, &key, err);
}

/* Reads the next event of a value. */
static bool next(struct diff *diff, enum diff_side side, struct rdb_event *ret, struct rd_err *err)
{
    struct again *in = &diff->in[side];
    enum rdb_status status = rdb_reader_next(in->reader, ret);
    return status == RDB_EVENT || again_fail(in, err);
}

/* ---- strings ---- */

/* A string that is read in pieces; `left` is not compared yet. */
struct stream_of {
    enum diff_side side;
    struct rd_slice left;
    char tmp[RD_NUM_I64_MAX];
    bool ended;
    uint64_t len;
};

static bool fill(struct diff *diff, struct stream_of *s, struct rd_err *err)
{
    struct rdb_event ev;
    while (s->left.len == 0 && !s->ended) {
        if (!next(diff, s->side, &ev, err))
            return false;
        s->ended = ev.kind == RDB_VALUE_END;
        if (ev.kind == RDB_ELEM)
            s->left = rdb_string_bytes(&ev.elem.str, s->tmp);
        s->len += s->left.len;
    }
    return true;
}

static size_t same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

static void advance(struct stream_of *s, size_t n)
{
    s->left = rd_slice(s->left.ptr + n, s->left.len - n);
}

static bool compare_strings(struct diff *diff, const struct diff_found *found,
                            struct diff_value *value, struct rd_err *err)
{
    struct stream_of a = {.side = DIFF_A}, b = {.side = DIFF_B};
    bool differs = false;
    if (!go_to(diff, found, DIFF_A, err) || !go_to(diff, found, DIFF_B, err))
        return false;
    while (fill(diff, &a, err) && fill(diff, &b, err)) {
        size_t n = a.left.len < b.left.len ? a.left.len : b.left.len;
        if (n == 0 && a.ended && b.ended) {
            value->bytes[DIFF_A] = a.len;
            value->bytes[DIFF_B] = b.len;
            value->changed = 1;
            return true;
        }
        if (n == 0 || differs) {
            differs = true;
            advance(&a, a.left.len);
            advance(&b, b.left.len);
            continue;
        }
        size_t same = same_bytes(a.left.ptr, b.left.ptr, n);
        value->first_byte += same;
        differs = same < n;
        advance(&a, n);
        advance(&b, n);
    }
    return false;
}

/* ---- parts ---- */

struct gathering {
    struct diff *diff;
    enum diff_side side;
};

static bool gather(void *ctx, const struct rdb_part *part, struct rd_err *err)
{
    const struct gathering *g = ctx;
    uint8_t key[PART_KEY], value[PART_VALUE];
    key[0] = (uint8_t)part->kind;
    memcpy(key + 1, part->name, sizeof part->name);
    value[0] = (uint8_t)g->side;
    rd_put_be64(value + 1, part->index);
    rd_put_be64(value + 9, (uint64_t)part->expire_ms);
    rd_hash128_put(value + 17, part->content);
    return sort_add(&g->diff->parts, rd_slice(key, sizeof key), rd_slice(value, sizeof value), err);
}

static bool gather_side(struct diff *diff, const struct diff_found *found, enum diff_side side,
                        struct diff_value *value, struct rd_err *err)
{
    struct gathering g = {diff, side};
    struct rdb_content_opts opts = diff->hashing;
    struct rdb_content content;
    struct rdb_event ev;
    opts.part = gather;
    opts.ctx = &g;
    rdb_content_init(&content, &opts);
    if (!go_to(diff, found, side, err))
        return false;
    do {
        if (!next(diff, side, &ev, err) || !rdb_content_put(&content, &ev, err))
            return false;
    } while (ev.kind != RDB_VALUE_END);
    value->n_parts[side] = rdb_content_parts(&content);
    return true;
}

/* The order of A, then the parts that are only in B. */
static bool stands_before(const struct diff_part *a, const struct diff_part *b)
{
    if (a->present[DIFF_A] != b->present[DIFF_A])
        return a->present[DIFF_A];
    enum diff_side side = a->present[DIFF_A] ? DIFF_A : DIFF_B;
    return a->index[side] < b->index[side];
}

static void keep_part(const struct diff *diff, struct diff_value *value,
                      const struct diff_part *part)
{
    size_t at = value->n_kept;
    while (at > 0 && stands_before(part, &value->parts[at - 1]))
        at--;
    if (at == diff->opts->max_elements)
        return;
    size_t n = value->n_kept < diff->opts->max_elements ? value->n_kept++ : value->n_kept - 1;
    memmove(&value->parts[at + 1], &value->parts[at], (n - at) * sizeof *part);
    value->parts[at] = *part;
}

/* One part on one side or both. */
static void hold_part(const struct diff *diff, struct diff_value *value, struct diff_part *part,
                      const struct rd_hash128 content[2])
{
    if (part->present[DIFF_A] && part->present[DIFF_B]) {
        bool same = rd_hash128_eq(content[DIFF_A], content[DIFF_B]);
        part->expiry_only = same;
        if (same && diff_same_expiry(diff, part->expire_ms[DIFF_A], part->expire_ms[DIFF_B]))
            return;
        value->changed++;
    } else {
        enum diff_side side = part->present[DIFF_A] ? DIFF_A : DIFF_B;
        if (diff_is_due(diff, side, part->expire_ms[side]))
            return;
        value->only[side]++;
    }
    keep_part(diff, value, part);
}

static bool hold_all(struct diff *diff, struct diff_value *value, struct rd_err *err)
{
    struct rd_slice key, record;
    uint8_t last[PART_KEY];
    struct diff_part part = {0};
    struct rd_hash128 content[2] = {{0}, {0}};
    bool any = false, end;
    while (sort_next(&diff->parts, &key, &record, &end, err)) {
        if (any && (end || memcmp(last, key.ptr, sizeof last) != 0)) {
            hold_part(diff, value, &part, content);
            part = (struct diff_part){0};
        }
        if (end)
            return true;
        memcpy(last, key.ptr, sizeof last);
        uint8_t side = record.ptr[0];
        part.kind = (enum rdb_part_kind)key.ptr[0];
        part.present[side] = true;
        part.index[side] = rd_get_be64(record.ptr + 1);
        part.expire_ms[side] = (int64_t)rd_get_be64(record.ptr + 9);
        content[side] = rd_hash128_get(record.ptr + 17);
        any = true;
    }
    return false;
}

/* ---- texts ---- */

static bool add_cut(struct rd_buf *buf, struct rd_slice bytes, bool *cut, struct rd_err *err)
{
    size_t room = DIFF_TEXT_MAX - buf->len;
    *cut = *cut || bytes.len > room;
    return rd_buf_add(buf, bytes.ptr, bytes.len < room ? bytes.len : room) ||
           rd_err_nomem(err, DIFF_TEXT_MAX);
}

static struct diff_part *find(struct diff_value *value, enum diff_side side, uint64_t index)
{
    for (size_t i = 0; i < value->n_kept; i++)
        if (value->parts[i].present[side] && value->parts[i].index[side] == index)
            return &value->parts[i];
    return NULL;
}

static bool add_number(struct diff_part *part, enum diff_side side, double score,
                       struct rd_err *err)
{
    char text[RD_NUM_F64_MAX];
    size_t len = rd_num_put_f64(text, score);
    return add_cut(&part->text[side], rd_slice(text, len), &part->text_cut[side], err);
}

/* The strings of an entry are separated by a space. */
static bool add_elem(struct diff_part *part, enum diff_side side, enum rdb_kind kind,
                     const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    const struct rdb_string *s = &ev->elem.str;
    struct rd_slice bytes = rdb_string_bytes(s, tmp);
    bool names = kind != RDB_KIND_STREAM &&
                 (ev->elem.role == RDB_ROLE_MEMBER || ev->elem.role == RDB_ROLE_FIELD);
    if (kind == RDB_KIND_STREAM && s->first && part->text[side].len > 0 &&
        !add_cut(&part->text[side], rd_slice_str(" "), &part->text_cut[side], err))
        return false;
    if (!names)
        return add_cut(&part->text[side], bytes, &part->text_cut[side], err);
    /* The name is the same on both sides. */
    if ((side == DIFF_A || !part->present[DIFF_A]) &&
        !add_cut(&part->name, bytes, &part->name_cut, err))
        return false;
    return kind != RDB_KIND_ZSET || s->more || add_number(part, side, ev->elem.score, err);
}

struct id_text {
    char s[2 * RD_NUM_I64_MAX + 2];
};

static struct id_text id_text(struct rdb_stream_id id)
{
    struct id_text text;
    snprintf(text.s, sizeof text.s, "%llu-%llu", (unsigned long long)id.ms,
             (unsigned long long)id.seq);
    return text;
}

static bool name_part(struct diff_part *part, const struct rdb_event *ev, struct rd_err *err)
{
    rd_buf_reset(&part->name);
    if (ev->kind == RDB_GROUP)
        return add_cut(&part->name, ev->group.name, &part->name_cut, err);
    return add_cut(&part->name, rd_slice_str(id_text(ev->entry.id).s), &part->name_cut, err);
}

/* ---- metadata, groups and consumers of a stream ---- */

enum { WORDS_MAX = 160 };

static bool add_words(struct diff_part *part, enum diff_side side, const char *words,
                      struct rd_err *err)
{
    return add_cut(&part->text[side], rd_slice_str(words), &part->text_cut[side], err);
}

static bool add_meta(struct diff_part *part, enum diff_side side, const struct rdb_event *ev,
                     struct rd_err *err)
{
    char words[WORDS_MAX];
    if (ev->stream.has_offsets)
        snprintf(words, sizeof words, "last id %s, %llu added, deleted up to %s",
                 id_text(ev->stream.last_id).s, (unsigned long long)ev->stream.entries_added,
                 id_text(ev->stream.max_deleted_id).s);
    else
        snprintf(words, sizeof words, "last id %s", id_text(ev->stream.last_id).s);
    return add_words(part, side, words, err);
}

static bool add_group(struct diff_part *part, enum diff_side side, const struct rdb_event *ev,
                      struct rd_err *err)
{
    char words[WORDS_MAX], read[32] = "";
    if (ev->group.entries_read != RDB_UNKNOWN)
        snprintf(read, sizeof read, ", %llu read", (unsigned long long)ev->group.entries_read);
    snprintf(words, sizeof words, "last id %s%s, %llu pending", id_text(ev->group.last_id).s, read,
             (unsigned long long)ev->group.n_pending);
    return name_part(part, ev, err) && add_words(part, side, words, err);
}

static bool add_consumer(struct diff_part *part, enum diff_side side, const struct rdb_event *ev,
                         struct rd_err *err)
{
    char owned[32];
    snprintf(owned, sizeof owned, " %llu", (unsigned long long)ev->consumer.n_owned);
    return add_words(part, side, "; ", err) &&
           add_cut(&part->text[side], ev->consumer.name, &part->text_cut[side], err) &&
           add_words(part, side, owned, err);
}

/* The name of an element of a vector set. */
static bool add_element(struct diff_part *part, enum diff_side side, const struct rdb_event *ev,
                        struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    return (side == DIFF_B && part->present[DIFF_A]) ||
           add_cut(&part->name, rdb_string_bytes(&ev->item.str, tmp), &part->name_cut, err);
}

/* The path of the fields that follow. */
static bool take_path(struct diff_value *value, const struct rdb_event *ev, struct rd_err *err)
{
    rd_buf_reset(&value->path);
    return rd_buf_add(&value->path, ev->elem.str.ptr, ev->elem.str.len) ||
           rd_err_nomem(err, ev->elem.str.len);
}

/* The path is the beginning of the name of its fields. */
static bool add_path(const struct diff_value *value, struct diff_part *part, enum diff_side side,
                     const struct rdb_event *ev, struct rd_err *err)
{
    bool begins = ev->elem.role == RDB_ROLE_FIELD && ev->elem.str.first &&
                  (side == DIFF_A || !part->present[DIFF_A]);
    if (!begins || value->path.len == 0)
        return true;
    return add_cut(&part->name, rd_buf_slice(&value->path), &part->name_cut, err) &&
           add_cut(&part->name, rd_slice_str(" "), &part->name_cut, err);
}

/* Whether this event adds text to a part. */
static bool has_text(const struct rdb_content *content, enum rdb_event_kind kind)
{
    return kind == RDB_ELEM || kind == RDB_ENTRY || kind == RDB_STREAM || kind == RDB_GROUP ||
           kind == RDB_CONSUMER || (kind == RDB_MODULE_ITEM && rdb_content_is_name(content));
}

static bool read_event(struct diff_value *value, enum diff_side side, struct rdb_content *content,
                       const struct rdb_event *ev, struct rd_err *err)
{
    if (!rdb_content_put(content, ev, err))
        return false;
    struct diff_part *part = NULL;
    if (ev->kind == RDB_ELEM && ev->elem.role == RDB_ROLE_PATH)
        return take_path(value, ev, err);
    if (has_text(content, ev->kind))
        part = find(value, side, rdb_content_parts(content) - 1);
    if (part == NULL)
        return true;
    switch (ev->kind) {
    case RDB_ELEM:
        return add_path(value, part, side, ev, err) && add_elem(part, side, content->kind, ev, err);
    case RDB_MODULE_ITEM:
        return add_element(part, side, ev, err);
    case RDB_ENTRY:
        return name_part(part, ev, err);
    case RDB_STREAM:
        return add_meta(part, side, ev, err);
    case RDB_GROUP:
        return add_group(part, side, ev, err);
    case RDB_CONSUMER:
        return add_consumer(part, side, ev, err);
    default:
        return true;
    }
}

static bool read_texts(struct diff *diff, const struct diff_found *found, enum diff_side side,
                       struct diff_value *value, struct rd_err *err)
{
    struct rdb_content content;
    struct rdb_event ev;
    rdb_content_init(&content, &diff->hashing);
    if (!go_to(diff, found, side, err))
        return false;
    do {
        if (!next(diff, side, &ev, err) || !read_event(value, side, &content, &ev, err))
            return false;
    } while (ev.kind != RDB_VALUE_END);
    return true;
}

/* Reads the bytes of a string around the first difference. */
static bool read_string(struct diff *diff, const struct diff_found *found, enum diff_side side,
                        struct diff_value *value, struct rd_err *err)
{
    struct stream_of s = {.side = side};
    struct diff_part *part = &value->parts[0];
    uint64_t skip = value->first_byte < DIFF_TEXT_MAX / 2 ? 0 : value->first_byte - STRING_BEFORE;
    part->present[side] = true;
    part->index[side] = skip;
    if (!go_to(diff, found, side, err))
        return false;
    while (fill(diff, &s, err)) {
        if (s.left.len == 0 || part->text_cut[side])
            return true;
        size_t n = skip < s.left.len ? (size_t)skip : s.left.len;
        skip -= n;
        advance(&s, n);
        if (!add_cut(&part->text[side], s.left, &part->text_cut[side], err))
            return false;
        advance(&s, s.left.len);
    }
    return false;
}

/* ---- values ---- */

static bool read_groups(struct diff *diff, const struct diff_found *found, struct diff_value *value,
                        struct rd_err *err)
{
    for (size_t i = 0; i < value->n_kept; i++)
        if (value->parts[i].kind == RDB_PART_GROUP &&
            !diff_group_texts(diff, found, &value->parts[i], err))
            return false;
    return true;
}

static bool compare_parts(struct diff *diff, const struct diff_found *found,
                          struct diff_value *value, struct rd_err *err)
{
    return sort_init(&diff->parts, PARTS_MEMORY, err) &&
           gather_side(diff, found, DIFF_A, value, err) &&
           gather_side(diff, found, DIFF_B, value, err) && sort_begin(&diff->parts, err) &&
           hold_all(diff, value, err) &&
           (!diff->opts->values ||
            (read_texts(diff, found, DIFF_A, value, err) &&
             read_texts(diff, found, DIFF_B, value, err) && read_groups(diff, found, value, err)));
}

bool diff_value_compare(struct diff *diff, const struct diff_found *found, struct diff_value *ret,
                        struct rd_err *err)
{
    *ret = (struct diff_value){0};
    bool string = found->key[DIFF_A].kind == RDB_KIND_STRING;
    if (string && !diff->opts->values)
        return compare_strings(diff, found, ret, err);
    ret->parts = rd_calloc((size_t)diff->opts->max_elements + 1, sizeof *ret->parts);
    if (ret->parts == NULL)
        return rd_err_nomem(err, (size_t)diff->opts->max_elements * sizeof *ret->parts);
    ret->n_kept = string;
    if (string)
        return compare_strings(diff, found, ret, err) &&
               read_string(diff, found, DIFF_A, ret, err) &&
               read_string(diff, found, DIFF_B, ret, err);
    bool ok = compare_parts(diff, found, ret, err);
    sort_done(&diff->parts);
    return ok;
}

void diff_value_done(struct diff_value *value)
{
    rd_buf_done(&value->path);
    for (size_t i = 0; i < value->n_kept; i++) {
        rd_buf_done(&value->parts[i].name);
        rd_buf_done(&value->parts[i].text[DIFF_A]);
        rd_buf_done(&value->parts[i].text[DIFF_B]);
    }
    rd_free(value->parts);
    *value = (struct diff_value){0};
}
