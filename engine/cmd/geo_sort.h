/* geo_sort.h - private to the geo commands: the results of a search, sorted by distance.
 */
#ifndef ENGINE_CMD_GEO_SORT_H
#define ENGINE_CMD_GEO_SORT_H

#include "base/slice.h"

struct engine_geo_point {
    double xy[2];
    double distance; /* in meters */
    double score;
    struct rd_slice member; /* owned by the set; ptr NULL: the digits of num */
    int64_t num;
    size_t index; /* index in the order of the search */
};

struct engine_geo_points {
    struct engine_geo_point *list;
    size_t n;
    size_t cap;
};

/* Sorts the first `wanted` points; the others follow in any order. Points at the same distance are
 * in the order of a server: as found when all are sorted, and as the quicksort of Bentley and
 * McIlroy leaves them when only some are. */
void engine_geo_sort(struct engine_geo_points *points, bool descending, size_t wanted);

#endif
