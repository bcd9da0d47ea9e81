#include "engine/geohash.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double uniform(uint64_t *state, double min, double max)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return min + (double)(*state >> 11) / 9007199254740992.0 * (max - min);
}

static const struct {
    double lon, lat;
    uint64_t hash;
    const char *text;
} places[] = {
    {13.361389, 38.115556, 3479099956230698, "sqc8b49rny0"},
    {15.087269, 37.502669, 3479447370796909, "sqdtr74hyu0"},
    {-5.6, 42.6, 2157242200379188, "ezs42e44yx0"},
};

Test(geohash, gives_the_numbers_and_texts_of_a_server)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        double xy[2];
        char text[ENGINE_GEO_TEXT + 1] = "";
        uint64_t hash = engine_geohash_encode(places[i].lon, places[i].lat);
        cr_assert_eq(hash, places[i].hash, "%llu", (unsigned long long)hash);
        engine_geohash_decode((double)hash, xy);
        engine_geohash_text(xy, text);
        cr_assert_str_eq(text, places[i].text);
        cr_assert_float_eq(xy[0], places[i].lon, 6e-6);
        cr_assert_float_eq(xy[1], places[i].lat, 3e-6);
    }
}

Test(geohash, decodes_to_the_middle_of_the_cell_that_encodes_to_the_same_number)
{
    uint64_t random = 88172645463325252;
    for (int i = 0; i < 20000; i++) {
        double xy[2];
        double lon = uniform(&random, -180, 180), lat = uniform(&random, -85.05, 85.05);
        uint64_t hash = engine_geohash_encode(lon, lat);
        cr_assert(hash >> 52 == 0);
        engine_geohash_decode((double)hash, xy);
        cr_assert_eq(engine_geohash_encode(xy[0], xy[1]), hash);
        cr_assert(fabs(xy[0] - lon) <= 360.0 / (1 << 27) + 1e-12);
        cr_assert(fabs(xy[1] - lat) <= 2 * ENGINE_GEO_LAT_MAX / (1 << 27) + 1e-12);
    }
}

Test(geohash, decodes_any_score_to_a_place_on_the_earth)
{
    static const double scores[] = {-1,   -0.0,   1e300, -1e300, INFINITY,          -INFINITY,
                                    1e19, 9.3e18, -1e18, 0.5,    4503599627370496.0};
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++) {
        double xy[2] = {1000, 1000};
        engine_geohash_decode(scores[i], xy);
        cr_assert(fabs(xy[0]) <= ENGINE_GEO_LON_MAX && fabs(xy[1]) <= ENGINE_GEO_LAT_MAX);
    }
}

/* As GEODIST does it: between the middles of two cells. */
static void check_distance(double lon1, double lat1, double lon2, double lat2, const char *expected)
{
    double a[2], b[2];
    char text[64];
    engine_geohash_decode((double)engine_geohash_encode(lon1, lat1), a);
    engine_geohash_decode((double)engine_geohash_encode(lon2, lat2), b);
    snprintf(text, sizeof text, "%.4f", engine_geohash_distance(a[0], a[1], b[0], b[1]));
    cr_assert_str_eq(text, expected);
}

Test(geohash, measures_distances_on_the_sphere_of_servers)
{
    check_distance(places[0].lon, places[0].lat, places[1].lon, places[1].lat, "166274.1516");
    check_distance(places[0].lon, places[0].lat, places[0].lon, places[0].lat, "0.0000");
    check_distance(7, 0, 7, 1, "111226.0989");
    check_distance(0, 0, 180, 0, "20020733.6202");
}

static bool is_covered(const struct engine_geo_cell cells[ENGINE_GEO_CELLS], double lon, double lat)
{
    double score = (double)engine_geohash_encode(lon, lat);
    for (int i = 0; i < ENGINE_GEO_CELLS; i++)
        if (cells[i].step > 0 && score >= engine_geo_cell_min(cells[i]) &&
            score < engine_geo_cell_max(cells[i]))
            return true;
    return false;
}

Test(geohash, covers_every_place_of_a_shape_by_few_small_cells)
{
    uint64_t random = 4101842887655102017;
    size_t n_within = 0;
    for (int i = 0; i < 2000; i++) {
        struct engine_geo_cell cells[ENGINE_GEO_CELLS];
        struct engine_geo_shape shape = {.box = i % 2 == 1, .meters = i % 3 == 0 ? 1000 : 1};
        double size = pow(10, uniform(&random, 0, 5.7));
        shape.xy[0] = uniform(&random, -150, 150);
        shape.xy[1] = uniform(&random, -60, 60);
        shape.radius = size / shape.meters;
        shape.width = uniform(&random, 0.2, 2) * size / shape.meters;
        shape.height = uniform(&random, 0.2, 2) * size / shape.meters;
        engine_geohash_cover(&shape, cells);
        for (int j = 0; j < 50; j++) {
            double degrees = size / 111000, meters;
            double xy[2] = {shape.xy[0] + uniform(&random, -2, 2) * degrees,
                            shape.xy[1] + uniform(&random, -1, 1) * degrees};
            if (!engine_geohash_within(&shape, xy, &meters))
                continue;
            n_within++;
            cr_assert(meters <= size * 1.5);
            cr_assert(is_covered(cells, xy[0], xy[1]), "%.17g %.17g", xy[0], xy[1]);
        }
        cr_assert(size > 1e5 || cells[0].step > 5);
    }
    cr_assert_gt(n_within, 20000);
}

Test(geohash, leaves_cells_out_that_the_shape_does_not_reach)
{
    struct engine_geo_cell cells[ENGINE_GEO_CELLS];
    struct engine_geo_shape shape = {.xy = {13.361389, 38.115556}, .radius = 1, .meters = 1};
    size_t n = 0;
    engine_geohash_cover(&shape, cells);
    for (int i = 0; i < ENGINE_GEO_CELLS; i++)
        n += cells[i].step > 0;
    cr_assert(n >= 1 && n < ENGINE_GEO_CELLS);
    shape.radius = INFINITY;
    engine_geohash_cover(&shape, cells);
    for (int i = 0; i < ENGINE_GEO_CELLS; i++)
        cr_assert_eq(cells[i].step, 1);
}
