/* transactions.h - the commands about transactions. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_TRANSACTIONS_H
#define ENGINE_COMMANDS_TRANSACTIONS_H

/* clang-format off */
#define ENGINE_TABLE_TRANSACTIONS(CMD, BOX, SUB, END)                                              \
    CMD(discard, "discard", TRANSACTIONS, ENGINE, 1,                                               \
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | AT_ONCE | ENDS_MULTI, A_TRANSACTION,      \
        "2.0.0",                                                                                   \
        "Discards the queued commands of a transaction", "O(N), N queued commands",)               \
    CMD(exec, "exec", TRANSACTIONS, ENGINE, 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG |         \
        AT_ONCE | ENDS_MULTI | RUNS_QUEUE,                                                         \
        A_TRANSACTION, "1.2.0",                                                                    \
        "Runs the queued commands of a transaction", "by the commands that are queued",)           \
    CMD(multi, "multi", TRANSACTIONS, ENGINE, 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY |  \
        AT_ONCE,                                                                                   \
        A_TRANSACTION, "1.2.0",                                                                    \
        "Begins a transaction: later commands are queued", "O(1)",)                                \
    CMD(unwatch, "unwatch", TRANSACTIONS, ENGINE, 1,                                               \
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, A_TRANSACTION, "2.2.0",                    \
        "Stops watching all keys", "O(1)",)                                                        \
    CMD(watch, "watch", TRANSACTIONS, ENGINE, -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY   \
        | AT_ONCE,                                                                                 \
        A_TRANSACTION, "2.2.0",                                                                    \
        "Makes the next EXEC fail if one of the keys changes before it", "O(N), N keys",           \
        KEYS_FROM(1, RO) ARGS("key@0..."))
/* clang-format on */

#endif
