/* commands.h - the commands of the server itself, and their handlers.
 *
 * Each handler is `void server_cmd_NAME(struct dispatch_call *call)`. The subcommands of a
 * container have handlers of their own ("client|list"), or the container has one handler for all.
 */
#ifndef SERVER_SURFACE_CMD_COMMANDS_H
#define SERVER_SURFACE_CMD_COMMANDS_H

#include "server/session/dispatch/dispatch.h"
#include "server/surface/server.h"

/* path in the table of commands, handler. The file is FAMILY.c. */
#define SERVER_COMMANDS(X)                                                                         \
    /* connection.c */                                                                             \
    X("auth", auth)                                                                                \
    X("hello", hello)                                                                              \
    X("quit", quit)                                                                                \
    X("reset", reset)                                                                              \
    /* client.c */                                                                                 \
    X("client", client)                                                                            \
    /* acl.c */                                                                                    \
    X("acl", acl)                                                                                  \
    /* config.c */                                                                                 \
    X("config", config)                                                                            \
    /* pubsub.c */                                                                                 \
    X("subscribe", subscribe)                                                                      \
    X("unsubscribe", unsubscribe)                                                                  \
    X("psubscribe", psubscribe)                                                                    \
    X("punsubscribe", punsubscribe)                                                                \
    X("ssubscribe", ssubscribe)                                                                    \
    X("sunsubscribe", sunsubscribe)                                                                \
    X("publish", publish)                                                                          \
    X("spublish", spublish)                                                                        \
    X("pubsub", pubsub)                                                                            \
    /* persist.c */                                                                                \
    X("save", save)                                                                                \
    X("bgsave", bgsave)                                                                            \
    X("bgrewriteaof", bgrewriteaof)                                                                \
    X("lastsave", lastsave)                                                                        \
    X("shutdown", shutdown)                                                                        \
    /* debug.c */                                                                                  \
    X("debug", debug)                                                                              \
    /* info.c, memory.c, slowlog.c, latency.c, monitor.c */                                        \
    X("info", info)                                                                                \
    X("memory", memory)                                                                            \
    X("slowlog", slowlog)                                                                          \
    X("latency", latency)                                                                          \
    X("monitor", monitor)                                                                          \
    X("lolwut", lolwut)                                                                            \
    /* replication.c, server/durable/replication/ */                                               \
    X("role", role)                                                                                \
    X("wait", wait)                                                                                \
    X("replicaof", replicaof)                                                                      \
    X("slaveof", replicaof)                                                                        \
    X("failover", failover)                                                                        \
    X("sync", sync)                                                                                \
    X("psync", sync)                                                                               \
    X("replconf", replconf)                                                                        \
    X("migrate", migrate)                                                                          \
    /* function.c */                                                                               \
    X("function", function)                                                                        \
    X("script", script)                                                                            \
    X("module", module)                                                                            \
    X("cluster", cluster)                                                                          \
    X("readonly", cluster)                                                                         \
    X("readwrite", cluster)                                                                        \
    X("asking", cluster)

#define X(path, name) DISPATCH_HANDLER(name);
SERVER_COMMANDS(X)
#undef X

/* Makes the handlers known to the dispatcher. */
void commands_register(struct sessions *sessions);

#endif
