#include "engine/call.h"
#include "engine/cmd/cmd.h"

void engine_cmd_echo(struct engine_call *call)
{
    engine_reply_bulk(call->reply, call->argv[1]);
}

void engine_cmd_ping(struct engine_call *call)
{
    if (call->argc > 2) {
        engine_reply_wrong_arity(call);
    } else if (call->session->subscribed && call->reply->proto == 2) {
        engine_reply_array(call->reply, 2);
        engine_reply_str(call->reply, "pong");
        engine_reply_bulk(call->reply, call->argc == 2 ? call->argv[1] : rd_slice("", 0));
    } else if (call->argc == 2) {
        engine_reply_bulk(call->reply, call->argv[1]);
    } else {
        engine_reply_simple(call->reply, "PONG");
    }
}

void engine_cmd_select(struct engine_call *call)
{
    int64_t id;
    if (!engine_arg_int(call, call->argv[1], &id))
        return;
    if (call->config->cluster && id != 0) {
        engine_reply_error(call->reply, "ERR SELECT is not allowed in cluster mode");
        return;
    }
    if (engine_call_db(call, id) == NULL) {
        engine_reply_error(call->reply, "ERR DB index is out of range");
        return;
    }
    call->session->db = (unsigned)id;
    engine_reply_ok(call->reply);
}
