/* GEOADD, GEODIST, GEOHASH and GEOPOS; arguments and replies of all geo commands. The searches are
 * in geo_search.c. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/geo.h"
#include "engine/cmd/zset.h"
#include "engine/cmd/zset_args.h"
#include "engine/human.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- arguments ---- */

static bool is_outside(double value, double limit)
{
    return value < -limit || value > limit;
}

bool engine_geo_arg_xy(struct engine_call *call, const struct rd_slice *args, double ret_xy[2])
{
    double xy[2];
    if (!engine_zset_arg_f64(call, args[0], &xy[0], NULL) ||
        !engine_zset_arg_f64(call, args[1], &xy[1], NULL))
        return false;
    if (is_outside(xy[0], ENGINE_GEO_LON_MAX) || is_outside(xy[1], ENGINE_GEO_LAT_MAX)) {
        engine_reply_errorf(call->reply, "ERR invalid longitude,latitude pair %f,%f", xy[0], xy[1]);
        return false;
    }
    ret_xy[0] = xy[0];
    ret_xy[1] = xy[1];
    return true;
}

bool engine_geo_arg_unit(struct engine_call *call, struct rd_slice arg, double *ret)
{
    static const struct {
        const char *name;
        double meters;
    } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (engine_arg_is(arg, units[i].name)) {
            *ret = units[i].meters;
            return true;
        }
    engine_reply_error(call->reply, "ERR unsupported unit provided. please use M, KM, FT, MI");
    return false;
}

bool engine_geo_arg_radius(struct engine_call *call, const struct rd_slice *args,
                           struct engine_geo_shape *ret)
{
    double radius;
    if (!engine_zset_arg_f64(call, args[0], &radius, "need numeric radius"))
        return false;
    if (radius < 0) {
        engine_reply_error(call->reply, "ERR radius cannot be negative");
        return false;
    }
    ret->box = false;
    ret->radius = radius;
    return engine_geo_arg_unit(call, args[1], &ret->meters);
}

bool engine_geo_arg_box(struct engine_call *call, const struct rd_slice *args,
                        struct engine_geo_shape *ret)
{
    double width, height;
    if (!engine_zset_arg_f64(call, args[0], &width, "need numeric width") ||
        !engine_zset_arg_f64(call, args[1], &height, "need numeric height"))
        return false;
    if (width < 0 || height < 0) {
        engine_reply_error(call->reply, "ERR height or width cannot be negative");
        return false;
    }
    ret->box = true;
    ret->width = width;
    ret->height = height;
    return engine_geo_arg_unit(call, args[2], &ret->meters);
}

bool engine_geo_arg_polygon(struct engine_call *call, const struct rd_slice *args, size_t n_args,
                            struct engine_geo_shape *ret, size_t *ret_used)
{
    int64_t n;
    if (!engine_arg_range(call, args[0], INT32_MIN, INT32_MAX, &n, "invalid number of vertices"))
        return false;
    if (n < 3 || (uint64_t)n > (n_args - 1) / 2) {
        engine_reply_error(call->reply, "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
        return false;
    }
    double(*corners)[2] = engine_scratch_alloc((size_t)n * sizeof *corners);
    ret->corners = (const double(*)[2])corners;
    ret->n_corners = (size_t)n;
    ret->meters = 1;
    for (size_t i = 0; i < ret->n_corners; i++)
        if (!engine_geo_arg_xy(call, args + 1 + 2 * i, corners[i]))
            return false;
    *ret_used = 1 + 2 * ret->n_corners;
    engine_geohash_center(ret);
    return true;
}

bool engine_geo_find(const struct engine_entry *entry, struct rd_slice member, double ret_xy[2])
{
    double score;
    if (entry == NULL || !engine_zset_score(&entry->value, member, &score))
        return false;
    engine_geohash_decode(score, ret_xy);
    return true;
}

/* ---- replies ---- */

/* redis-server multiplies by 10,000 first, so that halves of the last digit are rounded to an even
 * one, where "%.4f" would round the exact value. */
void engine_geo_reply_distance(struct engine_call *call, double distance)
{
    enum { UNITS = 10000 };
    char text[512];
    if (call->reply->off)
        return;
    double units = rint(distance * UNITS);
    int len = units >= 0 && units < 0x1p63
                  ? snprintf(text, sizeof text, "%" PRIu64 ".%04u", (uint64_t)units / UNITS,
                             (unsigned)((uint64_t)units % UNITS))
                  : snprintf(text, sizeof text, "%.4f", distance);
    engine_reply_bulk(call->reply, rd_slice(text, (size_t)len));
}

/* engine_reply_double() would use an exponent for some RESP3 doubles. */
static void reply_human(struct engine_call *call, double value)
{
    char text[ENGINE_HUMAN_MAX];
    struct engine_reply *reply = call->reply;
    size_t len = engine_human_put(text, (long double)value);
    if (reply->proto < 3) {
        engine_reply_bulk(reply, rd_slice(text, len));
        return;
    }
    rd_buf_add(&reply->buf, ",", 1);
    rd_buf_add(&reply->buf, text, len);
    rd_buf_add(&reply->buf, "\r\n", 2);
}

void engine_geo_reply_xy(struct engine_call *call, const double xy[2])
{
    if (call->reply->off)
        return;
    engine_reply_array(call->reply, 2);
    reply_human(call, xy[0]);
    reply_human(call, xy[1]);
}

/* ---- GEOADD ---- */

/* NX, XX and CH are passed to ZADD; longitude, latitude and member follow. */
static bool find_triples(struct engine_call *call, size_t *ret)
{
    bool nx = false, xx = false;
    size_t i = 2;
    for (; i < call->argc; i++) {
        if (engine_arg_is(call->argv[i], "nx"))
            nx = true;
        else if (engine_arg_is(call->argv[i], "xx"))
            xx = true;
        else if (!engine_arg_is(call->argv[i], "ch"))
            break;
    }
    *ret = i;
    if ((call->argc - i) % 3 == 0 && !(nx && xx))
        return true;
    engine_reply_syntax(call);
    return false;
}

/* The equivalent ZADD command; texts holds the digits of its scores. */
static bool make_zadd(struct engine_call *call, size_t first, struct rd_slice *argv,
                      char (*texts)[RD_NUM_I64_MAX])
{
    size_t n = first;
    argv[0] = rd_slice_str("zadd");
    for (size_t i = 1; i < first; i++)
        argv[i] = call->argv[i];
    for (size_t i = first; i < call->argc; i += 3, texts++) {
        double xy[2];
        if (!engine_geo_arg_xy(call, call->argv + i, xy))
            return false;
        uint64_t hash = engine_geohash_encode(xy[0], xy[1]);
        argv[n++] = rd_slice(*texts, rd_num_put_u64(*texts, hash));
        argv[n++] = call->argv[i + 2];
    }
    return true;
}

void engine_cmd_geoadd(struct engine_call *call)
{
    size_t first;
    if (!find_triples(call, &first))
        return;
    size_t n = (call->argc - first) / 3, argc = first + 2 * n;
    struct rd_slice *argv = engine_scratch_alloc(argc * sizeof *argv + n * RD_NUM_I64_MAX);
    if (make_zadd(call, first, argv, (char(*)[RD_NUM_I64_MAX])(argv + argc))) {
        engine_zset_run_add(call, argc, argv, false);
        if (call->dirty > 0)
            engine_effect(call, argc, argv);
    }
    engine_scratch_free(argv);
}

/* ---- queries ---- */

void engine_cmd_geodist(struct engine_call *call)
{
    struct engine_entry *entry;
    double meters = 1, a[2], b[2];
    if (call->argc == 5 && !engine_geo_arg_unit(call, call->argv[4], &meters))
        return;
    if (call->argc > 5) {
        engine_reply_syntax(call);
        return;
    }
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (engine_geo_find(entry, call->argv[2], a) && engine_geo_find(entry, call->argv[3], b))
        engine_geo_reply_distance(call, engine_geohash_distance(a[0], a[1], b[0], b[1]) / meters);
    else
        engine_reply_null(call->reply);
}

void engine_cmd_geohash(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        double xy[2];
        char text[ENGINE_GEO_TEXT];
        if (!engine_geo_find(entry, call->argv[i], xy)) {
            engine_reply_null(call->reply);
            continue;
        }
        engine_geohash_text(xy, text);
        engine_reply_bulk(call->reply, rd_slice(text, sizeof text));
    }
}

void engine_cmd_geopos(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        double xy[2];
        if (engine_geo_find(entry, call->argv[i], xy))
            engine_geo_reply_xy(call, xy);
        else
            engine_reply_null_array(call->reply);
    }
}
