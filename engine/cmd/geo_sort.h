/* geo_sort.h - private to the geo commands: what a search found, sorted by distance.
 */
#ifndef ENGINE_CMD_GEO_SORT_H
#define ENGINE_CMD_GEO_SORT_H

#include "base/slice.h"

struct engine_geo_point {
    double xy[2];
    double distance; /* in meters */
    double score;
    struct rd_slice member; /* the set's; ptr NULL: the digits of num */
    int64_t num;
    size_t index; /* the place at which it was found */
};

struct engine_geo_points {
    struct engine_geo_point *list;
    size_t n;
    size_t cap;
};

/* Puts the first `wanted` points in their order; the others follow in any. Points at the same
 * distance come in the order in which a server gives them: all of them as they were found, but only
 * some of them as the quicksort of Bentley and McIlroy leaves them. */
void engine_geo_sort(struct engine_geo_points *points, bool descending, size_t wanted);

#endif
