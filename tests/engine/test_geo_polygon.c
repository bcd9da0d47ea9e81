/* GEOSEARCH BYPOLYGON; the replies are those of Valkey 9.1.2. */
#include "tests/engine/ask.h"

#define BIG   "BYPOLYGON 4 -10 36 20 36 20 50 -10 50"
#define SMALL "BYPOLYGON 3 10 35 20 35 13 45"

static const struct {
    const char *line;
    const char *reply;
} steps[] = {
    {"GEOADD g 13.361389 38.115556 palermo 15.087269 37.502669 catania 2.349 48.8648 paris "
     "-73.97 40.78 newyork 12.4964 41.9028 rome",
     ":5\r\n"},
    {"GEOSEARCH g " BIG " ASC",
     "*4\r\n$5\r\nparis\r\n$4\r\nrome\r\n$7\r\npalermo\r\n$7\r\ncatania\r\n"},
    {"GEOSEARCH g " SMALL " WITHDIST DESC",
     "*3\r\n*2\r\n$4\r\nrome\r\n$11\r\n420939.4244\r\n*2\r\n$7\r\ncatania\r\n$11\r\n"
     "117500.9177\r\n*2\r\n$7\r\npalermo\r\n$10\r\n95963.8389\r\n"},
    {"GEOSEARCH g BYPOLYGON 5 -80 30 -60 30 -60 50 -70 45 -80 50 WITHDIST",
     "*1\r\n*2\r\n$7\r\nnewyork\r\n$11\r\n339124.6198\r\n"},
    {"GEOSEARCH g " SMALL " COUNT 1", "*1\r\n$7\r\npalermo\r\n"},
    {"GEOSEARCH g BYPOLYGON 2 10 35 20 35",
     "-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices\r\n"},
    {"GEOSEARCH g BYPOLYGON 3 10 35 20 35 13",
     "-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices\r\n"},
    {"GEOSEARCH g BYPOLYGON x 10 35 20 35 13 45", "-ERR invalid number of vertices\r\n"},
    {"GEOSEARCH g BYPOLYGON 3 10 35 200 35 13 45",
     "-ERR invalid longitude,latitude pair 200.000000,35.000000\r\n"},
    {"GEOSEARCH g BYRADIUS 5 km " SMALL, "-ERR syntax error\r\n"},
    {"GEOSEARCH g " SMALL " FROMLONLAT 1 2", "-ERR syntax error\r\n"},
    {"GEOSEARCHSTORE d g " SMALL " STOREDIST", ":3\r\n"},
    {"ZRANGE d 0 -1 WITHSCORES",
     "*6\r\n$7\r\npalermo\r\n$18\r\n95963.838899067079\r\n$7\r\ncatania\r\n$18\r\n"
     "117500.91766334035\r\n$4\r\nrome\r\n$18\r\n420939.42444431537\r\n"},
};

Test(geo_polygon, finds_the_places_inside)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->level = ENGINE_LEVEL_VALKEY_9_1;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        cr_expect_str_eq(ask_line(&ask, steps[i].line), steps[i].reply, "%s: %s", steps[i].line,
                         ask.text);
    ask_done(&ask);
}

Test(geo_polygon, is_unknown_to_clients_of_7_0)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "GEOADD g 13 38 a");
    cr_expect_str_eq(ask_line(&ask, "GEOSEARCH g " SMALL), "-ERR syntax error\r\n");
    ask_done(&ask);
}
