/* pubsub.h - the commands about messages. See engine/commands/table.h for
 * the format.
 */
#ifndef ENGINE_COMMANDS_PUBSUB_H
#define ENGINE_COMMANDS_PUBSUB_H

/* clang-format off */
#define ENGINE_TABLE_PUBSUB(CMD, BOX, SUB, END)                                                    \
    CMD(psubscribe, "psubscribe", PUBSUB, SERVER, -2, PUBSUB | NOSCRIPT | LOADING | STALE |        \
        IN_PUBSUB, 0,                                                                              \
        "2.0.0",                                                                                   \
        "Subscribes to the channels that match patterns", "O(N), N patterns subscribed to",        \
        ARGS("pattern(pattern:pattern)...")                                                        \
        LEVELS(SENTINEL))                                                                          \
    CMD(publish, "publish", PUBSUB, SERVER, 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE,    \
        0, "2.0.0",                                                                                \
        "Sends a message to a channel",                                                            \
        "O(N+M), N subscribers of the channel, M patterns in total",                               \
        ARGS("channel message")                                                                    \
        LEVELS(SENTINEL))                                                                          \
    BOX(pubsub, "pubsub", PUBSUB, SERVER, -2, 0, 0, "2.8.0",                                       \
        "Groups the commands that describe subscriptions", "by subcommand",)                       \
    SUB(pubsub, channels, "pubsub|channels", PUBSUB, SERVER, -2, PUBSUB | LOADING | STALE, 0,      \
        "2.8.0",                                                                                   \
        "Lists the channels that have subscribers", "O(N), N channels in use",                     \
        ARGS("[pattern:pattern]"))                                                                 \
    SUB(pubsub, help, "pubsub|help", PUBSUB, SERVER, 2, LOADING | STALE, 0, "6.2.0",               \
        "Lists the subcommands of PUBSUB", "O(1)",)                                                \
    SUB(pubsub, numpat, "pubsub|numpat", PUBSUB, SERVER, 2, PUBSUB | LOADING | STALE, 0, "2.8.0",  \
        "Counts the distinct subscribed patterns", "O(1)",)                                        \
    SUB(pubsub, numsub, "pubsub|numsub", PUBSUB, SERVER, -2, PUBSUB | LOADING | STALE, 0,          \
        "2.8.0",                                                                                   \
        "Counts the subscribers of channels", "O(N), N channels requested",                        \
        ARGS("[channel...]"))                                                                      \
    SUB(pubsub, shardchannels, "pubsub|shardchannels", PUBSUB, SERVER, -2,                         \
        PUBSUB | LOADING | STALE, 0, "7.0.0",                                                      \
        "Lists the shard channels that have subscribers", "O(N), N shard channels in use",         \
        ARGS("[pattern:pattern]"))                                                                 \
    SUB(pubsub, shardnumsub, "pubsub|shardnumsub", PUBSUB, SERVER, -2, PUBSUB | LOADING | STALE,   \
        0, "7.0.0",                                                                                \
        "Counts the subscribers of shard channels", "O(N), N shard channels requested",            \
        ARGS("[shardchannel...]"))                                                                 \
    END(pubsub)                                                                                    \
    CMD(punsubscribe, "punsubscribe", PUBSUB, SERVER, -1, PUBSUB | NOSCRIPT | LOADING | STALE |    \
        IN_PUBSUB, 0,                                                                              \
        "2.0.0",                                                                                   \
        "Ends subscriptions to patterns", "O(N+M), N patterns of the client, M of all clients",    \
        ARGS("[pattern:pattern...]")                                                               \
        LEVELS(SENTINEL))                                                                          \
    CMD(spublish, "spublish", PUBSUB, SERVER, 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE,  \
        0, "7.0.0",                                                                                \
        "Sends a message to a shard channel", "O(N), N subscribers",                               \
        KEY(1, NOT_KEY) ARGS("shardchannel message"))                                              \
    CMD(ssubscribe, "ssubscribe", PUBSUB, SERVER, -2, PUBSUB | NOSCRIPT | LOADING | STALE |        \
        IN_PUBSUB, 0,                                                                              \
        "7.0.0",                                                                                   \
        "Subscribes to shard channels", "O(N), N channels",                                        \
        KEYS_FROM(1, NOT_KEY) ARGS("shardchannel..."))                                             \
    CMD(subscribe, "subscribe", PUBSUB, SERVER, -2, PUBSUB | NOSCRIPT | LOADING | STALE |          \
        IN_PUBSUB, 0,                                                                              \
        "2.0.0",                                                                                   \
        "Subscribes to channels", "O(N), N channels",                                              \
        ARGS("channel...")                                                                         \
        LEVELS(SENTINEL))                                                                          \
    CMD(sunsubscribe, "sunsubscribe", PUBSUB, SERVER, -1, PUBSUB | NOSCRIPT | LOADING | STALE |    \
        IN_PUBSUB, 0,                                                                              \
        "7.0.0",                                                                                   \
        "Ends subscriptions to shard channels", "O(N), N channels",                                \
        KEYS_FROM(1, NOT_KEY) ARGS("[shardchannel...]"))                                           \
    CMD(unsubscribe, "unsubscribe", PUBSUB, SERVER, -1, PUBSUB | NOSCRIPT | LOADING | STALE |      \
        IN_PUBSUB, 0,                                                                              \
        "2.0.0",                                                                                   \
        "Ends subscriptions to channels", "O(N), N channels",                                      \
        ARGS("[channel...]")                                                                       \
        LEVELS(SENTINEL))
/* clang-format on */

#endif
