/* geohash.h - places on the earth as numbers, so that a sorted set can find nearby places.
 *
 *     uint64_t hash = engine_geohash_encode(13.361389, 38.115556);
 *     double xy[2];
 *     engine_geohash_decode((double)hash, xy);               // the middle of its cell
 *     double m = engine_geohash_distance(xy[0], xy[1], 15.087269, 37.502669);
 *
 *     struct engine_geo_cell cells[ENGINE_GEO_CELLS];
 *     engine_geohash_cover(&shape, cells);
 *     for (int i = 0; i < ENGINE_GEO_CELLS; i++)
 *         if (cells[i].step > 0)
 *             ... members with scores from engine_geo_cell_min(cells[i]) to below _max, and of
 *                 those the ones that are engine_geohash_within(&shape, xy, &distance) ...
 *
 * Longitude and latitude, from -180 to 180 and from -85.05112878 to 85.05112878 degrees, become 26
 * bits each. The bits alternate: those of the longitude are the odd ones. A cell of step n contains
 * the places with the same first 2 n bits. The hashes in a cell are consecutive; its eight
 * neighbours are found by adding to the two halves.
 *
 * All results are equal bit by bit to those of redis-server, so the order of operations matters. xy
 * is { longitude, latitude } everywhere.
 */
#ifndef ENGINE_GEOHASH_H
#define ENGINE_GEOHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINE_GEO_LON_MAX 180.0
#define ENGINE_GEO_LAT_MAX 85.05112878

enum {
    ENGINE_GEO_STEPS = 26, /* of a whole hash */
    ENGINE_GEO_CELLS = 9,
    ENGINE_GEO_TEXT = 11
};

struct engine_geo_cell {
    uint64_t bits;
    unsigned step; /* 0: no cell */
};

/* A circle, a rectangle or a polygon; lengths in a unit of `meters` meters. */
struct engine_geo_shape {
    bool box;
    const double (*corners)[2]; /* of a polygon; NULL: it is none */
    size_t n_corners;
    double xy[2];
    double radius; /* unless it is a box */
    double width;
    double height;
    double meters;
};

/* Coordinates must be in the ranges above. */
uint64_t engine_geohash_encode(double lon, double lat);

/* Accepts any score: one that is not a hash gives some place, as in redis-server. */
void engine_geohash_decode(double score, double ret_xy[2]);

/* The middle of the corners of a polygon, on a sphere: sets xy. */
void engine_geohash_center(struct engine_geo_shape *shape);

/* In meters, on a sphere. */
double engine_geohash_distance(double lon1, double lat1, double lon2, double lat2);

/* The usual text of eleven letters and digits; the last one has no meaning. Not terminated. */
void engine_geohash_text(const double xy[2], char ret[ENGINE_GEO_TEXT]);

/* The cells that cover the shape: the one with its center, then those to the north, south, east,
 * west, north-east, north-west, south-east and south-west; step 0 if one is not needed. For large
 * shapes, cells can be equal. */
void engine_geohash_cover(const struct engine_geo_shape *shape,
                          struct engine_geo_cell ret[ENGINE_GEO_CELLS]);

/* The scores of a cell: from min to below max. */
static inline double engine_geo_cell_min(struct engine_geo_cell cell)
{
    return (double)(cell.bits << (2 * (ENGINE_GEO_STEPS - cell.step)));
}

static inline double engine_geo_cell_max(struct engine_geo_cell cell)
{
    return (double)((cell.bits + 1) << (2 * (ENGINE_GEO_STEPS - cell.step)));
}

/* Whether a place is in the shape, and its distance from the center in meters. */
bool engine_geohash_within(const struct engine_geo_shape *shape, const double xy[2],
                           double *ret_meters);

#endif
