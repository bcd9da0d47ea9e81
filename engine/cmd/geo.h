/* geo.h - private to the geo commands: common arguments and replies.
 */
#ifndef ENGINE_CMD_GEO_H
#define ENGINE_CMD_GEO_H

#include "engine/call.h"
#include "engine/geohash.h"
#include "engine/value/zset.h"

/* Each replies with its error and returns false. */
bool engine_geo_arg_xy(struct engine_call *call, const struct rd_slice *args, double ret_xy[2]);

/* "m", "km", "ft" or "mi", as a number of meters. */
bool engine_geo_arg_unit(struct engine_call *call, struct rd_slice arg, double *ret);

/* Radius and unit; width, height and unit. */
bool engine_geo_arg_radius(struct engine_call *call, const struct rd_slice *args,
                           struct engine_geo_shape *ret);
bool engine_geo_arg_box(struct engine_call *call, const struct rd_slice *args,
                        struct engine_geo_shape *ret);

/* The number of corners, and as many pairs; *ret_used of the n_args arguments are of the polygon.
 * engine_scratch_free() frees ret->corners, also after a failure. */
bool engine_geo_arg_polygon(struct engine_call *call, const struct rd_slice *args, size_t n_args,
                            struct engine_geo_shape *ret, size_t *ret_used);

/* The coordinates of a member. False, without a reply: the member does not exist. */
bool engine_geo_find(const struct engine_entry *entry, struct rd_slice member, double ret_xy[2]);

/* A distance, with four digits after the point. */
void engine_geo_reply_distance(struct engine_call *call, double distance);

/* An array of longitude and latitude, without exponents. */
void engine_geo_reply_xy(struct engine_call *call, const double xy[2]);

#endif
