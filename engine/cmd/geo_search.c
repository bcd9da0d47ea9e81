/* GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS and GEORADIUSBYMEMBER. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/geo.h"
#include "engine/cmd/geo_sort.h"
#include "engine/cmd/zset_args.h"

enum form { RADIUS, BY_MEMBER, SEARCH };

enum order { NONE, ASCENDING, DESCENDING };

struct search {
    enum form form;
    bool read_only; /* GEORADIUS_RO and GEORADIUSBYMEMBER_RO: no STORE */
    bool search_store;
    const struct engine_entry *entry; /* NULL: the key does not exist */
    struct engine_geo_shape shape;
    bool from_member;
    bool from_xy;
    bool by_radius;
    bool by_box;
    bool by_polygon; /* of Valkey 9 */
    bool with_distance;
    bool with_hash;
    bool with_xy;
    bool any;
    enum order order;
    uint64_t count; /* 0: all */
    const struct rd_slice *store;
    bool store_distance;
};

static bool refuse(struct engine_call *call, const char *error)
{
    engine_reply_error(call->reply, error);
    return false;
}

/* ---- options ---- */

/* An option without arguments. */
static bool take_word(struct rd_slice arg, struct search *s)
{
    if (engine_arg_is(arg, "withdist"))
        s->with_distance = true;
    else if (engine_arg_is(arg, "withhash"))
        s->with_hash = true;
    else if (engine_arg_is(arg, "withcoord"))
        s->with_xy = true;
    else if (engine_arg_is(arg, "any"))
        s->any = true;
    else if (engine_arg_is(arg, "asc"))
        s->order = ASCENDING;
    else if (engine_arg_is(arg, "desc"))
        s->order = DESCENDING;
    else if (s->search_store && engine_arg_is(arg, "storedist"))
        s->store_distance = true;
    else
        return false;
    return true;
}

static bool take_count(struct engine_call *call, struct rd_slice arg, struct search *s)
{
    int64_t count;
    if (!engine_arg_i64(call, arg, &count, NULL))
        return false;
    if (count <= 0)
        return refuse(call, "ERR COUNT must be > 0");
    s->count = (uint64_t)count;
    return true;
}

static bool find_member(struct engine_call *call, struct rd_slice member, struct search *s)
{
    if (s->entry == NULL || engine_geo_find(s->entry, member, s->shape.xy))
        return true;
    engine_reply_by_data(call->reply);
    return refuse(call, "ERR could not decode requested zset member");
}

static bool take_polygon(struct engine_call *call, size_t i, struct search *s, size_t *used)
{
    s->by_polygon = true;
    if (!engine_geo_arg_polygon(call, call->argv + i + 1, call->argc - i - 1, &s->shape, used))
        return false;
    ++*used;
    return true;
}

/* Options of GEOSEARCH. *used is the number of arguments; 0: not one of these options. */
static bool take_shape(struct engine_call *call, size_t i, struct search *s, size_t *used)
{
    const struct rd_slice *arg = call->argv + i;
    size_t left = call->argc - i - 1;
    *used = 0;
    if (s->form != SEARCH || s->by_polygon)
        return true;
    if (left >= 1 && !s->from_xy && engine_arg_is(arg[0], "frommember")) {
        s->from_member = true;
        *used = 2;
        return find_member(call, arg[1], s);
    }
    if (left >= 2 && !s->from_member && engine_arg_is(arg[0], "fromlonlat")) {
        s->from_xy = true;
        *used = 3;
        return engine_geo_arg_xy(call, arg + 1, s->shape.xy);
    }
    if (left >= 2 && !s->by_box && engine_arg_is(arg[0], "byradius")) {
        s->by_radius = true;
        *used = 3;
        return engine_geo_arg_radius(call, arg + 1, &s->shape);
    }
    if (left >= 3 && !s->by_radius && engine_arg_is(arg[0], "bybox")) {
        s->by_box = true;
        *used = 4;
        return engine_geo_arg_box(call, arg + 1, &s->shape);
    }
    if (left >= 2 && !s->by_radius && !s->by_box && !s->from_member && !s->from_xy &&
        engine_call_later_options(call) && engine_arg_is(arg[0], "bypolygon"))
        return take_polygon(call, i, s, used);
    return true;
}

/* STORE and STOREDIST of GEORADIUS. */
static bool take_store(const struct engine_call *call, size_t i, struct search *s)
{
    bool distance = engine_arg_is(call->argv[i], "storedist");
    if (s->form == SEARCH || s->read_only || i + 1 >= call->argc ||
        (!distance && !engine_arg_is(call->argv[i], "store")))
        return false;
    s->store = &call->argv[i + 1];
    s->store_distance = distance;
    return true;
}

static bool parse_options(struct engine_call *call, size_t first, struct search *s)
{
    size_t used;
    for (size_t i = first; i < call->argc; i += used) {
        used = 1;
        if (take_word(call->argv[i], s))
            continue;
        used = 2;
        if (i + 1 < call->argc && engine_arg_is(call->argv[i], "count")) {
            if (!take_count(call, call->argv[i + 1], s))
                return false;
            continue;
        }
        if (take_store(call, i, s))
            continue;
        if (!take_shape(call, i, s, &used))
            return false;
        if (used == 0) {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

/* The option name as given, because servers quote it. */
static bool refuse_named(struct engine_call *call, const char *format)
{
    struct rd_slice name = call->argv[0];
    char text[64];
    size_t len = name.len < sizeof text ? name.len : sizeof text - 1;
    memcpy(text, name.ptr, len);
    text[len] = '\0';
    engine_reply_errorf(call->reply, "ERR exactly one of %s can be specified for %s", format, text);
    return false;
}

static bool check_options(struct engine_call *call, const struct search *s)
{
    if (s->store != NULL && (s->with_distance || s->with_hash || s->with_xy)) {
        engine_reply_errorf(
            call->reply, "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
            s->search_store ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS");
        return false;
    }
    if (s->form == SEARCH && !s->from_member && !s->from_xy && !s->by_polygon)
        return refuse_named(call, "FROMMEMBER or FROMLONLAT");
    if (s->form == SEARCH && !s->by_radius && !s->by_box && !s->by_polygon)
        return refuse_named(call, "BYRADIUS and BYBOX");
    return !s->any || s->count > 0 || refuse(call, "ERR the ANY argument requires COUNT argument");
}

/* ret: the index of the first option. */
static bool parse_center(struct engine_call *call, struct search *s, size_t *ret)
{
    const struct rd_slice *argv = call->argv;
    switch (s->form) {
    case RADIUS:
        *ret = 6;
        return engine_geo_arg_xy(call, argv + 2, s->shape.xy) &&
               engine_geo_arg_radius(call, argv + 4, &s->shape);
    case BY_MEMBER:
        *ret = 5;
        return s->entry == NULL ||
               (find_member(call, argv[2], s) && engine_geo_arg_radius(call, argv + 3, &s->shape));
    default:
        *ret = s->search_store ? 3 : 2;
        s->store = s->search_store ? &argv[1] : NULL;
        return true;
    }
}

/* ---- search ---- */

static struct engine_geo_point *add_point(struct engine_geo_points *points)
{
    if (points->n == points->cap) {
        points->cap = points->cap == 0 ? 16 : 2 * points->cap;
        points->list = engine_scratch_realloc(points->list, points->cap * sizeof *points->list);
    }
    return &points->list[points->n++];
}

static void take_point(const struct search *s, struct engine_zset_cursor *at, double score,
                       struct engine_geo_points *points)
{
    double xy[2], distance;
    engine_geohash_decode(score, xy);
    if (!engine_geohash_within(&s->shape, xy, &distance))
        return;
    struct engine_geo_point *point = add_point(points);
    *point = (struct engine_geo_point){
        .xy = {xy[0], xy[1]}, .distance = distance, .score = score, .index = points->n};
    point->member = engine_zset_member(at);
    if (point->member.ptr == (const uint8_t *)at->tmp) {
        rd_num_get_i64(point->member, &point->num);
        point->member.ptr = NULL;
    }
}

static struct rd_slice point_member(const struct engine_geo_point *point, char tmp[RD_NUM_I64_MAX])
{
    if (point->member.ptr != NULL)
        return point->member;
    return rd_slice(tmp, rd_num_put_i64(tmp, point->num));
}

static void search_cell(const struct search *s, struct engine_geo_cell cell, uint64_t limit,
                        struct engine_geo_points *points)
{
    struct engine_zset_cursor at;
    struct engine_zset_range range = {
        .min = engine_geo_cell_min(cell), .max = engine_geo_cell_max(cell), .max_open = true};
    for (bool is = engine_zset_first_in(&s->entry->value, &range, &at); is;
         is = engine_zset_next(&at)) {
        double score = engine_zset_score_at(&at);
        if (!(score < range.max))
            return;
        take_point(s, &at, score, points);
        if (limit > 0 && points->n >= limit)
            return;
    }
}

/* For large shapes, several neighbours can be the same cell. */
static void search_cells(const struct search *s, uint64_t limit, struct engine_geo_points *points)
{
    struct engine_geo_cell cells[ENGINE_GEO_CELLS];
    int last = 0;
    engine_geohash_cover(&s->shape, cells);
    for (int i = 0; i < ENGINE_GEO_CELLS; i++) {
        if (cells[i].step == 0 || (last > 0 && cells[i].bits == cells[last].bits))
            continue;
        if (limit > 0 && points->n >= limit)
            return;
        search_cell(s, cells[i], limit, points);
        last = i;
    }
}

/* ---- results ---- */

static void reply_points(struct engine_call *call, const struct search *s,
                         const struct engine_geo_points *points, size_t n)
{
    uint64_t extra = (uint64_t)s->with_distance + s->with_hash + s->with_xy;
    engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n && !call->reply->off; i++) {
        const struct engine_geo_point *point = &points->list[i];
        char tmp[RD_NUM_I64_MAX];
        if (extra > 0)
            engine_reply_array(call->reply, extra + 1);
        engine_reply_bulk(call->reply, point_member(point, tmp));
        if (s->with_distance)
            engine_geo_reply_distance(call, point->distance / s->shape.meters);
        if (s->with_hash)
            engine_reply_int(call->reply, (int64_t)point->score);
        if (s->with_xy)
            engine_geo_reply_xy(call, point->xy);
    }
}

static void store_points(struct engine_call *call, const struct search *s,
                         const struct engine_geo_points *points, size_t n)
{
    char tmp[RD_NUM_I64_MAX];
    struct engine_value result = engine_zset_new_skiplist();
    for (size_t i = 0; i < n; i++) {
        const struct engine_geo_point *point = &points->list[i];
        struct rd_slice member = point_member(point, tmp);
        double score = s->store_distance ? point->distance / s->shape.meters : point->score;
        if (engine_zset_node(&result, member) == NULL)
            engine_zset_push(&result, score, member);
    }
    engine_zset_settle(&result, call->config);
    engine_zset_store(call, *s->store, &result,
                      s->form == SEARCH ? "geosearchstore" : "georadiusstore", n);
    engine_reply_int(call->reply, (int64_t)n);
}

static void give_nothing(struct engine_call *call, const struct search *s)
{
    if (s->store == NULL) {
        engine_reply_array(call->reply, 0);
        return;
    }
    engine_zset_store_nothing(call, *s->store);
    engine_reply_int(call->reply, 0);
}

static void find_points(struct engine_call *call, struct search *s)
{
    struct engine_geo_points points = {0};
    /* The nearest points are requested, unless ANY is given. */
    if (s->count > 0 && s->order == NONE && !s->any)
        s->order = ASCENDING;
    search_cells(s, s->any ? s->count : 0, &points);
    size_t n = s->count == 0 || points.n < s->count ? points.n : (size_t)s->count;
    if (s->order != NONE)
        engine_geo_sort(&points, s->order == DESCENDING, n);
    if (s->store != NULL)
        store_points(call, s, &points, n);
    else
        reply_points(call, s, &points, n);
    engine_scratch_free(points.list);
}

static void run_on(struct engine_call *call, struct search *s)
{
    size_t options;
    if (!parse_center(call, s, &options) || !parse_options(call, options, s) ||
        !check_options(call, s))
        return;
    if (s->entry == NULL)
        give_nothing(call, s);
    else
        find_points(call, s);
}

static void run(struct engine_call *call, struct search *s)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[s->search_store ? 2 : 1], ENGINE_ZSET, &entry))
        return;
    s->entry = entry;
    run_on(call, s);
    engine_scratch_free((void *)(uintptr_t)s->shape.corners);
}

void engine_cmd_georadius(struct engine_call *call)
{
    run(call, &(struct search){.form = RADIUS});
}

void engine_cmd_georadius_ro(struct engine_call *call)
{
    run(call, &(struct search){.form = RADIUS, .read_only = true});
}

void engine_cmd_georadiusbymember(struct engine_call *call)
{
    run(call, &(struct search){.form = BY_MEMBER});
}

void engine_cmd_georadiusbymember_ro(struct engine_call *call)
{
    run(call, &(struct search){.form = BY_MEMBER, .read_only = true});
}

void engine_cmd_geosearch(struct engine_call *call)
{
    run(call, &(struct search){.form = SEARCH});
}

void engine_cmd_geosearchstore(struct engine_call *call)
{
    run(call, &(struct search){.form = SEARCH, .search_store = true});
}
