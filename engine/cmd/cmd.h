/* cmd.h - the functions that run the commands of the engine, named as in the table.
 *
 *     void engine_cmd_strlen(struct engine_call *call);
 *     void engine_cmd_object_encoding(struct engine_call *call);
 *
 * The arity is checked before the call; engine/call.h has the rules for these functions.
 */
#ifndef ENGINE_CMD_CMD_H
#define ENGINE_CMD_CMD_H

#include "engine/commands/table.h"

struct engine_call;

#define ENGINE_DECLARE_ENGINE(id) void engine_cmd_##id(struct engine_call *call);
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
