/* geo.h - the commands about places in sorted sets. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_GEO_H
#define ENGINE_COMMANDS_GEO_H

/* clang-format off */
#define ENGINE_TABLE_GEO(CMD, BOX, SUB, END)                                                       \
    CMD(geoadd, "geoadd", GEO, ENGINE, -5, WRITE | DENYOOM, A_GEO, "3.2.0",                        \
        "Adds places with longitude and latitude to a sorted set",                                 \
        "O(log(N)) per item, N elements",                                                          \
        KEY(1, RW | UPDATE) HISTORY("6.2.0 CH, NX, XX")                                            \
        ARGS("key@0 [condition(NX | XX){6.2.0}] [CH=change{6.2.0}] "                               \
             "longitude_latitude_member(longitude:double latitude:double member)..."))             \
    CMD(geodist, "geodist", GEO, ENGINE, -4, READONLY, A_GEO, "3.2.0",                             \
        "Returns the distance between two places", "O(log(N))",                                    \
        KEY(1, RO | ACCESS) ARGS("key@0 member1 member2 [unit(M | KM | FT | MI)]"))                \
    CMD(geohash, "geohash", GEO, ENGINE, -2, READONLY, A_GEO, "3.2.0",                             \
        "Returns the geohash strings of places", "O(log(N)) per member, N elements",               \
        KEY(1, RO | ACCESS) ARGS("key@0 member..."))                                               \
    CMD(geopos, "geopos", GEO, ENGINE, -2, READONLY, A_GEO, "3.2.0",                               \
        "Returns the longitude and latitude of places", "O(N), N members",                         \
        KEY(1, RO | ACCESS) ARGS("key@0 member..."))                                               \
    CMD(georadius, "georadius", GEO, ENGINE, -6, WRITE | DENYOOM | MOVABLE_KEYS, A_GEO, "3.2.0",   \
        "Finds places around a point, and optionally stores them",                                 \
        "O(N+log(M)), N places in the bounding box, M in total",                                   \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RO | ACCESS)                                           \
             SPEC(KEYWORD("STORE", 6), RANGE(0, 1, 0), OW | UPDATE)                                \
             SPEC(KEYWORD("STOREDIST", 6), RANGE(0, 1, 0), OW | UPDATE))                           \
        DEPRECATED("6.2.0", "GEOSEARCH and GEOSEARCHSTORE with BYRADIUS")                          \
        HISTORY("6.2.0 ANY after COUNT; 7.0.0 units in upper case")                                \
        ARGS("key@0 longitude:double latitude:double radius:double unit(M | KM | FT | MI) "        \
             "[WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT count:integer [ANY{6.2.0}])] "        \
             "[order(ASC | DESC)] [STORE key@1] [STOREDIST key@2]"))                               \
    CMD(georadius_ro, "georadius_ro", GEO, ENGINE, -6, READONLY, A_GEO, "3.2.10",                  \
        "Finds places around a point", "O(N+log(M)), N places in the bounding box, M in total",    \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "GEOSEARCH with BYRADIUS")                         \
        HISTORY("6.2.0 ANY after COUNT")                                                           \
        ARGS("key@0 longitude:double latitude:double radius:double unit(M | KM | FT | MI) "        \
             "[WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT count:integer [ANY{6.2.0}])] "        \
             "[order(ASC | DESC)]"))                                                               \
    CMD(georadiusbymember, "georadiusbymember", GEO, ENGINE, -5, WRITE | DENYOOM | MOVABLE_KEYS,   \
        A_GEO, "3.2.0",                                                                            \
        "Finds places around another place, and optionally stores them",                           \
        "O(N+log(M)), N places in the bounding box, M in total",                                   \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RO | ACCESS)                                           \
             SPEC(KEYWORD("STORE", 5), RANGE(0, 1, 0), OW | UPDATE)                                \
             SPEC(KEYWORD("STOREDIST", 5), RANGE(0, 1, 0), OW | UPDATE))                           \
        DEPRECATED("6.2.0", "GEOSEARCH and GEOSEARCHSTORE with BYRADIUS and FROMMEMBER")           \
        HISTORY("7.0.0 units in upper case")                                                       \
        ARGS("key@0 member radius:double unit(M | KM | FT | MI) [WITHCOORD] [WITHDIST] "           \
             "[WITHHASH] [count(COUNT count:integer [ANY])] [order(ASC | DESC)] [STORE key@1] "    \
             "[STOREDIST key@2]"))                                                                 \
    CMD(georadiusbymember_ro, "georadiusbymember_ro", GEO, ENGINE, -5, READONLY, A_GEO, "3.2.10",  \
        "Finds places around another place",                                                       \
        "O(N+log(M)), N places in the bounding box, M in total",                                   \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "GEOSEARCH with BYRADIUS and FROMMEMBER")          \
        ARGS("key@0 member radius:double unit(M | KM | FT | MI) [WITHCOORD] [WITHDIST] "           \
             "[WITHHASH] [count(COUNT count:integer [ANY])] [order(ASC | DESC)]"))                 \
    CMD(geosearch, "geosearch", GEO, ENGINE, -7, READONLY, A_GEO, "6.2.0",                         \
        "Finds the places inside a circle or a rectangle",                                         \
        "O(N+log(M)), N places in the bounding box, M in total",                                   \
        KEY(1, RO | ACCESS) HISTORY("7.0.0 units in upper case")                                   \
        ARGS("key@0 from(FROMMEMBER member | FROMLONLAT longitude_latitude(longitude:double "      \
             "latitude:double)) by(circle(BYRADIUS radius:double unit(M | KM | FT | MI)) | "       \
             "box(BYBOX width:double height:double unit(M | KM | FT | MI))) [order(ASC | DESC)] "  \
             "[count(COUNT count:integer [ANY])] [WITHCOORD] [WITHDIST] [WITHHASH]"))              \
    CMD(geosearchstore, "geosearchstore", GEO, ENGINE, -8, WRITE | DENYOOM, A_GEO, "6.2.0",        \
        "Stores the places inside a circle or a rectangle",                                        \
        "O(N+log(M)), N places in the bounding box, M in total",                                   \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), RANGE(0, 1, 0), RO | ACCESS))                                          \
        HISTORY("7.0.0 units in upper case")                                                       \
        ARGS("destination@0 source@1 from(FROMMEMBER member | FROMLONLAT "                         \
             "longitude_latitude(longitude:double latitude:double)) by(circle(BYRADIUS "           \
             "radius:double unit(M | KM | FT | MI)) | box(BYBOX width:double height:double "       \
             "unit(M | KM | FT | MI))) [order(ASC | DESC)] [count(COUNT count:integer [ANY])] "    \
             "[STOREDIST]"))
/* clang-format on */

#endif
