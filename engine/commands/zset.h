/* zset.h - the commands about sorted sets. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_ZSET_H
#define ENGINE_COMMANDS_ZSET_H

/* clang-format off */
#define ENGINE_TABLE_ZSET(CMD, BOX, SUB, END)                                                      \
    CMD(bzmpop, "bzmpop", ZSET, ENGINE, -5, WRITE | BLOCKING | MOVABLE_KEYS, A_ZSET, "7.0.0",      \
        "Pops members from the first sorted set that is not empty, or waits",                      \
        "O(K)+O(M*log(N)), K keys, N elements, M popped",                                          \
        KEYS(0, 0, 0, SPEC(INDEX(2), KEYNUM(0, 1, 1), RW | ACCESS | DELETE))                       \
        ARGS("timeout:double numkeys:integer key@0... where(MIN | MAX) [COUNT count:integer]"))    \
    CMD(bzpopmax, "bzpopmax", ZSET, ENGINE, -3, WRITE | NOSCRIPT | BLOCKING | FAST, A_ZSET,        \
        "5.0.0",                                                                                   \
        "Pops the member with the highest score, or waits for one", "O(log(N)), N elements",       \
        KEYS(1, -2, 1, SPEC(INDEX(1), RANGE(-2, 1, 0), RW | ACCESS | DELETE))                      \
        HISTORY("6.0.0 the timeout may have a fraction") ARGS("key@0... timeout:double"))          \
    CMD(bzpopmin, "bzpopmin", ZSET, ENGINE, -3, WRITE | NOSCRIPT | BLOCKING | FAST, A_ZSET,        \
        "5.0.0",                                                                                   \
        "Pops the member with the lowest score, or waits for one", "O(log(N)), N elements",        \
        KEYS(1, -2, 1, SPEC(INDEX(1), RANGE(-2, 1, 0), RW | ACCESS | DELETE))                      \
        HISTORY("6.0.0 the timeout may have a fraction") ARGS("key@0... timeout:double"))          \
    CMD(zadd, "zadd", ZSET, ENGINE, -4, WRITE | DENYOOM | FAST, A_ZSET, "1.2.0",                   \
        "Adds members to a sorted set or changes their scores", "O(log(N)) per item, N elements",  \
        KEY(1, RW | UPDATE)                                                                        \
        HISTORY("2.4.0 several members; 3.0.2 XX, NX, CH, INCR; 6.2.0 GT, LT")                     \
        ARGS("key@0 [condition(NX | XX){3.0.2}] [comparison(GT | LT){6.2.0}] [CH=change{3.0.2}] "  \
             "[INCR=increment{3.0.2}] score_member(score:double member)..."))                      \
    CMD(zcard, "zcard", ZSET, ENGINE, 2, READONLY | FAST, A_ZSET, "1.2.0",                         \
        "Counts the members of a sorted set", "O(1)",                                              \
        KEY(1, RO) ARGS("key@0"))                                                                  \
    CMD(zcount, "zcount", ZSET, ENGINE, 4, READONLY | FAST, A_ZSET, "2.0.0",                       \
        "Counts the members whose scores are in a range", "O(log(N)), N elements",                 \
        KEY(1, RO | ACCESS) ARGS("key@0 min:double max:double"))                                   \
    CMD(zdiff, "zdiff", ZSET, ENGINE, -3, READONLY | MOVABLE_KEYS, A_ZSET, "6.2.0",                \
        "Returns the members of the first sorted set that are in none of the others",              \
        "O(L+(N-K)*log(N)), L elements in total, N in the first set, K in the result",             \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("numkeys:integer key@0... [WITHSCORES]"))                                             \
    CMD(zdiffstore, "zdiffstore", ZSET, ENGINE, -4, WRITE | DENYOOM | MOVABLE_KEYS, A_ZSET,        \
        "6.2.0",                                                                                   \
        "Stores the members of the first sorted set that are in none of the others",               \
        "O(L+(N-K)*log(N)), L elements in total, N in the first set, K in the result",             \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS))                                         \
        ARGS("destination@0 numkeys:integer key@1..."))                                            \
    CMD(zincrby, "zincrby", ZSET, ENGINE, 4, WRITE | DENYOOM | FAST, A_ZSET, "1.2.0",              \
        "Adds to the score of a member", "O(log(N)), N elements",                                  \
        KEY(1, RW | ACCESS | UPDATE) ARGS("key@0 increment:integer member"))                       \
    CMD(zinter, "zinter", ZSET, ENGINE, -3, READONLY | MOVABLE_KEYS, A_ZSET, "6.2.0",              \
        "Returns the members that all sorted sets have in common",                                 \
        "O(N*K)+O(M*log(M)), N in the smallest set, K sets, M in the result",                      \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("numkeys:integer key@0... [WEIGHTS weight:integer...] [AGGREGATE aggregate(SUM | "    \
             "MIN | MAX)] [WITHSCORES]"))                                                          \
    CMD(zintercard, "zintercard", ZSET, ENGINE, -3, READONLY | MOVABLE_KEYS, A_ZSET, "7.0.0",      \
        "Counts the members that all sorted sets have in common",                                  \
        "O(N*K), N in the smallest set, K sets",                                                   \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("numkeys:integer key@0... [LIMIT limit:integer]"))                                    \
    CMD(zinterstore, "zinterstore", ZSET, ENGINE, -4, WRITE | DENYOOM | MOVABLE_KEYS, A_ZSET,      \
        "2.0.0",                                                                                   \
        "Stores the members that all sorted sets have in common",                                  \
        "O(N*K)+O(M*log(M)), N in the smallest set, K sets, M in the result",                      \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS))                                         \
        ARGS("destination@0 numkeys:integer key@1... [WEIGHTS weight:integer...] [AGGREGATE "      \
             "aggregate(SUM | MIN | MAX)]"))                                                       \
    CMD(zlexcount, "zlexcount", ZSET, ENGINE, 4, READONLY | FAST, A_ZSET, "2.8.9",                 \
        "Counts the members between two strings in byte order", "O(log(N)), N elements",           \
        KEY(1, RO | ACCESS) ARGS("key@0 min max"))                                                 \
    CMD(zmove, "zmove", ZSET, ENGINE, -4, WRITE | DENYOOM | LATER_VERSION, A_ZSET, "8.12.0",       \
        "Moves members from one sorted set to another", "O(N), N elements",                        \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 selection(MIN | MAX) [COUNT count:integer]"))                 \
    CMD(zmovemember, "zmovemember", ZSET, ENGINE, -4, WRITE | LATER_VERSION, A_ZSET, "8.12.0",     \
        "Moves named members between sorted sets", "O(N), N elements",                             \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), RW | ACCESS | DELETE)                                  \
             SPEC(INDEX(2), RANGE(0, 1, 0), RW | INSERT))                                          \
        ARGS("source@0 destination@1 [condition(NX | XX)] MEMBERS num-members:integer "            \
             "member..."))                                                                         \
    CMD(zmpop, "zmpop", ZSET, ENGINE, -4, WRITE | MOVABLE_KEYS, A_ZSET, "7.0.0",                   \
        "Pops members from the first sorted set that is not empty",                                \
        "O(K)+O(M*log(N)), K keys, N elements, M popped",                                          \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RW | ACCESS | DELETE))                       \
        ARGS("numkeys:integer key@0... where(MIN | MAX) [COUNT count:integer]"))                   \
    CMD(zmscore, "zmscore", ZSET, ENGINE, -3, READONLY | FAST, A_ZSET, "6.2.0",                    \
        "Returns the scores of several members", "O(N), N members requested",                      \
        KEY(1, RO | ACCESS) ARGS("key@0 member..."))                                               \
    CMD(zpopmax, "zpopmax", ZSET, ENGINE, -2, WRITE | FAST, A_ZSET, "5.0.0",                       \
        "Pops the members with the highest scores", "O(M*log(N)), N elements, M popped",           \
        KEY(1, RW | ACCESS | DELETE) ARGS("key@0 [count:integer]"))                                \
    CMD(zpopmin, "zpopmin", ZSET, ENGINE, -2, WRITE | FAST, A_ZSET, "5.0.0",                       \
        "Pops the members with the lowest scores", "O(M*log(N)), N elements, M popped",            \
        KEY(1, RW | ACCESS | DELETE) ARGS("key@0 [count:integer]"))                                \
    CMD(zrandmember, "zrandmember", ZSET, ENGINE, -2, READONLY, A_ZSET, "6.2.0",                   \
        "Returns random members of a sorted set", "O(N), N members returned",                      \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 [options(count:integer [WITHSCORES])]"))                                       \
    CMD(zrange, "zrange", ZSET, ENGINE, -4, READONLY, A_ZSET, "1.2.0",                             \
        "Returns a range of a sorted set by rank, score or byte order",                            \
        "O(log(N)+M), N elements, M returned",                                                     \
        KEY(1, RO | ACCESS) HISTORY("6.2.0 REV, BYSCORE, BYLEX, LIMIT")                            \
        ARGS("key@0 start stop [sortby(BYSCORE | BYLEX){6.2.0}] [REV{6.2.0}] [LIMIT "              \
             "offset_count(offset:integer count:integer){6.2.0}] [WITHSCORES]"))                   \
    CMD(zrangebylex, "zrangebylex", ZSET, ENGINE, -4, READONLY, A_ZSET, "2.8.9",                   \
        "Returns the members between two strings in byte order",                                   \
        "O(log(N)+M), N elements, M returned",                                                     \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "ZRANGE with BYLEX")                               \
        ARGS("key@0 min max [LIMIT offset_count(offset:integer count:integer)]"))                  \
    CMD(zrangebyscore, "zrangebyscore", ZSET, ENGINE, -4, READONLY, A_ZSET, "1.0.5",               \
        "Returns the members whose scores are in a range", "O(log(N)+M), N elements, M returned",  \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "ZRANGE with BYSCORE")                             \
        HISTORY("2.0.0 WITHSCORES")                                                                \
        ARGS("key@0 min:double max:double [WITHSCORES{2.0.0}] [LIMIT "                             \
             "offset_count(offset:integer count:integer)]"))                                       \
    CMD(zrangestore, "zrangestore", ZSET, ENGINE, -5, WRITE | DENYOOM, A_ZSET, "6.2.0",            \
        "Stores a range of a sorted set in another key", "O(log(N)+M), N elements, M stored",      \
        KEYS(1, 2, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), RANGE(0, 1, 0), RO | ACCESS))                                          \
        ARGS("dst@0 src@1 min max [sortby(BYSCORE | BYLEX)] [REV] [LIMIT "                         \
             "offset_count(offset:integer count:integer)]"))                                       \
    CMD(zrank, "zrank", ZSET, ENGINE, 3, READONLY | FAST, A_ZSET, "2.0.0",                         \
        "Returns the rank of a member, lowest score first", "O(log(N)), N elements",               \
        KEY(1, RO | ACCESS) ARGS("key@0 member"))                                                  \
    CMD(zrem, "zrem", ZSET, ENGINE, -3, WRITE | FAST, A_ZSET, "1.2.0",                             \
        "Removes members of a sorted set", "O(M*log(N)), N elements, M removed",                   \
        KEY(1, RW | DELETE) HISTORY("2.4.0 several members") ARGS("key@0 member..."))              \
    CMD(zremrangebylex, "zremrangebylex", ZSET, ENGINE, 4, WRITE, A_ZSET, "2.8.9",                 \
        "Removes the members between two strings in byte order",                                   \
        "O(log(N)+M), N elements, M removed",                                                      \
        KEY(1, RW | DELETE) ARGS("key@0 min max"))                                                 \
    CMD(zremrangebyrank, "zremrangebyrank", ZSET, ENGINE, 4, WRITE, A_ZSET, "2.0.0",               \
        "Removes the members in a range of ranks", "O(log(N)+M), N elements, M removed",           \
        KEY(1, RW | DELETE) ARGS("key@0 start:integer stop:integer"))                              \
    CMD(zremrangebyscore, "zremrangebyscore", ZSET, ENGINE, 4, WRITE, A_ZSET, "1.2.0",             \
        "Removes the members whose scores are in a range", "O(log(N)+M), N elements, M removed",   \
        KEY(1, RW | DELETE) ARGS("key@0 min:double max:double"))                                   \
    CMD(zrevrange, "zrevrange", ZSET, ENGINE, -4, READONLY, A_ZSET, "1.2.0",                       \
        "Returns a range of ranks, highest score first", "O(log(N)+M), N elements, M returned",    \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "ZRANGE with REV")                                 \
        ARGS("key@0 start:integer stop:integer [WITHSCORES]"))                                     \
    CMD(zrevrangebylex, "zrevrangebylex", ZSET, ENGINE, -4, READONLY, A_ZSET, "2.8.9",             \
        "Returns the members between two strings, greatest first",                                 \
        "O(log(N)+M), N elements, M returned",                                                     \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "ZRANGE with REV and BYLEX")                       \
        ARGS("key@0 max min [LIMIT offset_count(offset:integer count:integer)]"))                  \
    CMD(zrevrangebyscore, "zrevrangebyscore", ZSET, ENGINE, -4, READONLY, A_ZSET, "2.2.0",         \
        "Returns the members in a range of scores, highest first",                                 \
        "O(log(N)+M), N elements, M returned",                                                     \
        KEY(1, RO | ACCESS) DEPRECATED("6.2.0", "ZRANGE with REV and BYSCORE")                     \
        HISTORY("2.1.6 bounds may be exclusive")                                                   \
        ARGS("key@0 max:double min:double [WITHSCORES] [LIMIT offset_count(offset:integer "        \
             "count:integer)]"))                                                                   \
    CMD(zrevrank, "zrevrank", ZSET, ENGINE, 3, READONLY | FAST, A_ZSET, "2.0.0",                   \
        "Returns the rank of a member, highest score first", "O(log(N)), N elements",              \
        KEY(1, RO | ACCESS) ARGS("key@0 member"))                                                  \
    CMD(zscan, "zscan", ZSET, ENGINE, -3, READONLY, A_ZSET, "2.8.0",                               \
        "Iterates over the members and scores of a sorted set, a few per call",                    \
        "O(1) per call, O(N) for all N members",                                                   \
        KEY(1, RO | ACCESS) TIPS("nondeterministic_output")                                        \
        ARGS("key@0 cursor:integer [MATCH pattern:pattern] [COUNT count:integer]"))                \
    CMD(zscore, "zscore", ZSET, ENGINE, 3, READONLY | FAST, A_ZSET, "1.2.0",                       \
        "Returns the score of a member", "O(1)",                                                   \
        KEY(1, RO | ACCESS) ARGS("key@0 member"))                                                  \
    CMD(zunion, "zunion", ZSET, ENGINE, -3, READONLY | MOVABLE_KEYS, A_ZSET, "6.2.0",              \
        "Returns the members of any of the sorted sets",                                           \
        "O(N)+O(M*log(M)), N elements in total, M in the result",                                  \
        KEYS(0, 0, 0, SPEC(INDEX(1), KEYNUM(0, 1, 1), RO | ACCESS))                                \
        ARGS("numkeys:integer key@0... [WEIGHTS weight:integer...] [AGGREGATE aggregate(SUM | "    \
             "MIN | MAX)] [WITHSCORES]"))                                                          \
    CMD(zunionstore, "zunionstore", ZSET, ENGINE, -4, WRITE | DENYOOM | MOVABLE_KEYS, A_ZSET,      \
        "2.0.0",                                                                                   \
        "Stores the members of any of the sorted sets",                                            \
        "O(N)+O(M*log(M)), N elements in total, M in the result",                                  \
        KEYS(1, 1, 1,                                                                              \
             SPEC(INDEX(1), RANGE(0, 1, 0), OW | UPDATE)                                           \
             SPEC(INDEX(2), KEYNUM(0, 1, 1), RO | ACCESS))                                         \
        ARGS("destination@0 numkeys:integer key@1... [WEIGHTS weight:integer...] [AGGREGATE "      \
             "aggregate(SUM | MIN | MAX)]"))
/* clang-format on */

#endif
