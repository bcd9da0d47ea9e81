#include "engine/geohash.h"

#include <math.h>

#define EARTH_RADIUS 6372797.560856
#define MERCATOR_MAX 20037726.37
#define DEGREE       (M_PI / 180.0)

struct range {
    double min;
    double max;
};

struct area {
    struct range lon;
    struct range lat;
};

static const struct area whole = {.lon = {-ENGINE_GEO_LON_MAX, ENGINE_GEO_LON_MAX},
                                  .lat = {-ENGINE_GEO_LAT_MAX, ENGINE_GEO_LAT_MAX}};

static double radians(double degrees)
{
    return degrees * DEGREE;
}

static double degrees(double radians)
{
    return radians / DEGREE;
}

/* ---- bits ---- */

static uint64_t spread(uint32_t half)
{
    uint64_t x = half;
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x << 2) & 0x3333333333333333;
    return (x | x << 1) & 0x5555555555555555;
}

static uint32_t gather(uint64_t x)
{
    x &= 0x5555555555555555;
    x = (x | x >> 1) & 0x3333333333333333;
    x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff00ff00ff;
    x = (x | x >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(x | x >> 16);
}

static uint64_t join(uint32_t lon, uint32_t lat)
{
    return spread(lat) | spread(lon) << 1;
}

/* ---- cells ---- */

static uint32_t position(double value, struct range range, unsigned step)
{
    double offset = (value - range.min) / (range.max - range.min);
    return (uint32_t)(offset * (double)(1ull << step));
}

static struct engine_geo_cell cell_of(const struct area *in, double lon, double lat, unsigned step)
{
    uint64_t bits = join(position(lon, in->lon, step), position(lat, in->lat, step));
    return (struct engine_geo_cell){.bits = bits, .step = step};
}

static struct range part(uint32_t index, struct range range, unsigned step)
{
    double scale = range.max - range.min;
    double parts = (double)(1ull << step);
    return (struct range){.min = range.min + index / parts * scale,
                          .max = range.min + (uint32_t)(index + 1) / parts * scale};
}

static struct area area_of(struct engine_geo_cell cell)
{
    return (struct area){.lon = part(gather(cell.bits >> 1), whole.lon, cell.step),
                         .lat = part(gather(cell.bits), whole.lat, cell.step)};
}

/* The cell dx further east and dy further north, around the earth. */
static struct engine_geo_cell neighbour(struct engine_geo_cell cell, int dx, int dy)
{
    uint32_t mask = (uint32_t)((1ull << cell.step) - 1);
    uint32_t lon = gather(cell.bits >> 1);
    uint32_t lat = gather(cell.bits);
    if (dx != 0)
        lon = (lon + (uint32_t)dx) & mask;
    if (dy != 0)
        lat = (lat + (uint32_t)dy) & mask;
    return (struct engine_geo_cell){.bits = join(lon, lat), .step = cell.step};
}

uint64_t engine_geohash_encode(double lon, double lat)
{
    return cell_of(&whole, lon, lat, ENGINE_GEO_STEPS).bits;
}

/* Converts as x86 processors do, which also define the result for negative and out-of-range
 * numbers. */
static uint64_t score_bits(double score)
{
    const double half = 9223372036854775808.0; /* 2^63 */
    const uint64_t top = (uint64_t)1 << 63;
    if (score >= half)
        return score < 2 * half ? (uint64_t)score : 0;
    return score >= -half ? (uint64_t)(int64_t)score : top;
}

static double middle(struct range range, double limit)
{
    double value = (range.min + range.max) / 2;
    if (value > limit)
        return limit;
    return value < -limit ? -limit : value;
}

void engine_geohash_decode(double score, double ret_xy[2])
{
    struct engine_geo_cell cell = {.bits = score_bits(score), .step = ENGINE_GEO_STEPS};
    struct area area = area_of(cell);
    ret_xy[0] = middle(area.lon, ENGINE_GEO_LON_MAX);
    ret_xy[1] = middle(area.lat, ENGINE_GEO_LAT_MAX);
}

void engine_geohash_text(const double xy[2], char ret[ENGINE_GEO_TEXT])
{
    static const char alphabet[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    static const struct area usual = {.lon = {-180, 180}, .lat = {-90, 90}};
    uint64_t bits = cell_of(&usual, xy[0], xy[1], ENGINE_GEO_STEPS).bits;
    for (int i = 0; i < ENGINE_GEO_TEXT - 1; i++)
        ret[i] = alphabet[bits >> (2 * ENGINE_GEO_STEPS - 5 * (i + 1)) & 0x1f];
    ret[ENGINE_GEO_TEXT - 1] = '0'; /* 52 bits are ten letters and a part of an eleventh */
}

/* ---- distances ---- */

static double lat_distance(double lat1, double lat2)
{
    return EARTH_RADIUS * fabs(radians(lat2) - radians(lat1));
}

double engine_geohash_distance(double lon1, double lat1, double lon2, double lat2)
{
    double v = sin((radians(lon2) - radians(lon1)) / 2);
    if (fpclassify(v) == FP_ZERO)
        return lat_distance(lat1, lat2);
    double lat1r = radians(lat1);
    double lat2r = radians(lat2);
    double u = sin((lat2r - lat1r) / 2);
    double a = u * u + cos(lat1r) * cos(lat2r) * v * v;
    return 2.0 * EARTH_RADIUS * asin(sqrt(a));
}

static bool within_box(const struct engine_geo_shape *shape, const double xy[2], double *ret_meters)
{
    double height = shape->height * shape->meters;
    double width = shape->width * shape->meters;
    if (lat_distance(xy[1], shape->xy[1]) > height / 2)
        return false;
    if (engine_geohash_distance(xy[0], xy[1], shape->xy[0], xy[1]) > width / 2)
        return false;
    *ret_meters = engine_geohash_distance(shape->xy[0], shape->xy[1], xy[0], xy[1]);
    return true;
}

/* A line from the place to the west crosses the border an odd number of times. */
static bool within_polygon(const struct engine_geo_shape *shape, const double xy[2],
                           double *ret_meters)
{
    bool inside = false;
    for (size_t i = 0, k = shape->n_corners - 1; i < shape->n_corners; k = i++) {
        const double *a = shape->corners[i], *b = shape->corners[k];
        if ((a[1] > xy[1]) != (b[1] > xy[1]) &&
            xy[0] < (b[0] - a[0]) * (xy[1] - a[1]) / (b[1] - a[1]) + a[0])
            inside = !inside;
    }
    if (inside)
        *ret_meters = engine_geohash_distance(shape->xy[0], shape->xy[1], xy[0], xy[1]);
    return inside;
}

bool engine_geohash_within(const struct engine_geo_shape *shape, const double xy[2],
                           double *ret_meters)
{
    if (shape->corners != NULL)
        return within_polygon(shape, xy, ret_meters);
    if (shape->box)
        return within_box(shape, xy, ret_meters);
    double meters = engine_geohash_distance(shape->xy[0], shape->xy[1], xy[0], xy[1]);
    if (meters > shape->radius * shape->meters)
        return false;
    *ret_meters = meters;
    return true;
}

/* ---- what covers a shape ---- */

void engine_geohash_center(struct engine_geo_shape *shape)
{
    double x = 0, y = 0, z = 0;
    for (size_t i = 0; i < shape->n_corners; i++) {
        double lon = radians(shape->corners[i][0]), lat = radians(shape->corners[i][1]);
        x += cos(lat) * cos(lon);
        y += cos(lat) * sin(lon);
        z += sin(lat);
    }
    shape->xy[0] = degrees(atan2(y, x));
    shape->xy[1] = degrees(atan2(z, sqrt(x * x + y * y)));
}

static void widen(struct range *range, double value)
{
    range->min = value < range->min ? value : range->min;
    range->max = value > range->max ? value : range->max;
}

static struct area bounds_of_polygon(const struct engine_geo_shape *shape)
{
    struct area bounds = {.lon = {ENGINE_GEO_LON_MAX, -ENGINE_GEO_LON_MAX},
                          .lat = {ENGINE_GEO_LAT_MAX, -ENGINE_GEO_LAT_MAX}};
    for (size_t i = 0; i < shape->n_corners; i++) {
        widen(&bounds.lon, shape->corners[i][0]);
        widen(&bounds.lat, shape->corners[i][1]);
    }
    return bounds;
}

/* A rectangle in degrees around the shape. Meridians converge towards the poles, so the edge nearer
 * to a pole gives the east and west. */
static struct area bounds_of(const struct engine_geo_shape *shape)
{
    if (shape->corners != NULL)
        return bounds_of_polygon(shape);
    double lon = shape->xy[0], lat = shape->xy[1];
    double height = shape->meters * (shape->box ? shape->height / 2 : shape->radius);
    double width = shape->meters * (shape->box ? shape->width / 2 : shape->radius);
    double lat_delta = degrees(height / EARTH_RADIUS);
    double edge = lat < 0 ? lat - lat_delta : lat + lat_delta;
    double lon_delta = degrees(width / EARTH_RADIUS / cos(radians(edge)));
    return (struct area){.lon = {lon - lon_delta, lon + lon_delta},
                         .lat = {lat - lat_delta, lat + lat_delta}};
}

/* The number of steps for cells of about this size; fewer near the poles, where cells are
 * narrow. */
static unsigned steps_for(double meters, double lat)
{
    int step = 1;
    if (!(meters > 0))
        return ENGINE_GEO_STEPS;
    for (; meters < MERCATOR_MAX; meters *= 2)
        step++;
    step -= 2;
    if (lat > 66 || lat < -66)
        step -= lat > 80 || lat < -80 ? 2 : 1;
    if (step < 1)
        return 1;
    return step > ENGINE_GEO_STEPS ? ENGINE_GEO_STEPS : (unsigned)step;
}

static const struct {
    int x, y;
} directions[ENGINE_GEO_CELLS] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                                  {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};

static void surround(const struct engine_geo_shape *shape, unsigned step,
                     struct engine_geo_cell ret[ENGINE_GEO_CELLS])
{
    ret[0] = cell_of(&whole, shape->xy[0], shape->xy[1], step);
    for (int i = 1; i < ENGINE_GEO_CELLS; i++)
        ret[i] = neighbour(ret[0], directions[i].x, directions[i].y);
}

static bool is_enough(const struct engine_geo_cell cells[ENGINE_GEO_CELLS],
                      const struct area *bounds)
{
    return !(area_of(cells[1]).lat.max < bounds->lat.max ||
             area_of(cells[2]).lat.min > bounds->lat.min ||
             area_of(cells[3]).lon.max < bounds->lon.max ||
             area_of(cells[4]).lon.min > bounds->lon.min);
}

/* Drops the cells on sides that the shape does not reach. */
static void drop_useless(struct engine_geo_cell cells[ENGINE_GEO_CELLS], const struct area *bounds)
{
    struct area area = area_of(cells[0]);
    bool south = area.lat.min < bounds->lat.min;
    bool north = area.lat.max > bounds->lat.max;
    bool west = area.lon.min < bounds->lon.min;
    bool east = area.lon.max > bounds->lon.max;
    for (int i = 1; i < ENGINE_GEO_CELLS; i++) {
        int x = directions[i].x, y = directions[i].y;
        if ((south && y < 0) || (north && y > 0) || (west && x < 0) || (east && x > 0))
            cells[i] = (struct engine_geo_cell){0};
    }
}

/* From the center to the farthest corner of the bounds. */
static double radius_of_polygon(const struct engine_geo_shape *shape, const struct area *bounds)
{
    double lon[] = {bounds->lon.min, bounds->lon.max}, lat[] = {bounds->lat.min, bounds->lat.max};
    double radius = 0;
    for (int i = 0; i < 4; i++) {
        double meters =
            engine_geohash_distance(shape->xy[0], shape->xy[1], lon[i & 1], lat[i >> 1]);
        radius = meters > radius ? meters : radius;
    }
    return radius;
}

static double radius_of(const struct engine_geo_shape *shape, const struct area *bounds)
{
    if (shape->corners != NULL)
        return radius_of_polygon(shape, bounds);
    if (shape->box)
        return sqrt((shape->width / 2) * (shape->width / 2) +
                    (shape->height / 2) * (shape->height / 2));
    return shape->radius;
}

void engine_geohash_cover(const struct engine_geo_shape *shape,
                          struct engine_geo_cell ret[ENGINE_GEO_CELLS])
{
    struct area bounds = bounds_of(shape);
    unsigned step = steps_for(radius_of(shape, &bounds) * shape->meters, shape->xy[1]);
    surround(shape, step, ret);
    if (step > 1 && !is_enough(ret, &bounds))
        surround(shape, --step, ret);
    if (step >= 2)
        drop_useless(ret, &bounds);
}
