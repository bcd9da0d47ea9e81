/* cmd.h - the functions that run the commands of the engine, one for each, named as in the table.
 *
 *     void engine_cmd_strlen(struct engine_call *call);
 *     void engine_cmd_object_encoding(struct engine_call *call);
 *
 * A function is called with the arity checked; engine/call.h says what it may do. A family that is
 * there says so with ENGINE_HAVE_… 1 (the build may say it); the table carries no function of a
 * family that is not.
 */
#ifndef ENGINE_CMD_CMD_H
#define ENGINE_CMD_CMD_H

#include "engine/commands/table.h"

struct engine_call;

#ifndef ENGINE_HAVE_STRING
#define ENGINE_HAVE_STRING 0
#endif
#ifndef ENGINE_HAVE_LIST
#define ENGINE_HAVE_LIST 0
#endif
#ifndef ENGINE_HAVE_SET
#define ENGINE_HAVE_SET 0
#endif
#ifndef ENGINE_HAVE_HASH
#define ENGINE_HAVE_HASH 0
#endif
#ifndef ENGINE_HAVE_ZSET
#define ENGINE_HAVE_ZSET 0
#endif
#ifndef ENGINE_HAVE_GEO
#define ENGINE_HAVE_GEO 0
#endif
#ifndef ENGINE_HAVE_STREAM
#define ENGINE_HAVE_STREAM 0
#endif
#ifndef ENGINE_HAVE_BITMAP
#define ENGINE_HAVE_BITMAP 0
#endif
#ifndef ENGINE_HAVE_HLL
#define ENGINE_HAVE_HLL 0
#endif
#ifndef ENGINE_HAVE_GENERIC
#define ENGINE_HAVE_GENERIC 0 /* keys of any type, SORT, and RESTORE-ASKING */
#endif
#ifndef ENGINE_HAVE_TRANSACTIONS
#define ENGINE_HAVE_TRANSACTIONS 0
#endif
#ifndef ENGINE_HAVE_CONNECTION
#define ENGINE_HAVE_CONNECTION 0 /* ECHO, PING, SELECT */
#endif
#ifndef ENGINE_HAVE_SERVER_GROUP
#define ENGINE_HAVE_SERVER_GROUP 0 /* DBSIZE, FLUSHALL, FLUSHDB, SWAPDB, TIME */
#endif
#ifndef ENGINE_HAVE_TABLE
#define ENGINE_HAVE_TABLE 1 /* COMMAND */
#endif

#define ENGINE_DECLARE_ENGINE(id)         void engine_cmd_##id(struct engine_call *call);
#define ENGINE_DECLARE_ENGINE_GENERIC(id) ENGINE_DECLARE_ENGINE(id)
#define ENGINE_DECLARE_ENGINE_TABLE(id)   ENGINE_DECLARE_ENGINE(id)
#define ENGINE_DECLARE_ENGINE_BOX(id)
#define ENGINE_DECLARE_SERVER(id)
#define ENGINE_DECLARE_LATER(id)

#define ENGINE_DECLARE_CMD(id, name, group, owner, arity, flags, acl, since, summary, cost, more)  \
    ENGINE_DECLARE_##owner(id)
#define ENGINE_DECLARE_SUB(box, id, name, group, owner, arity, flags, acl, since, summary, cost,   \
                           more)                                                                   \
    ENGINE_DECLARE_##owner(box##_##id)
#define ENGINE_DECLARE_END(id)

ENGINE_COMMANDS(ENGINE_DECLARE_CMD, ENGINE_DECLARE_CMD, ENGINE_DECLARE_SUB, ENGINE_DECLARE_END)

#endif
