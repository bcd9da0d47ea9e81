/* Commands among the keys of a snapshot: Valkey 9.2 sends what was written during a full sync that
 * needs no fork there. They run on the data set that is being loaded. */
#include "base/resp.h"
#include "engine/effects.h"
#include "server/durable/replication/receive_impl.h"

static bool run(struct receive *r, unsigned db, const struct resp_command *command,
                struct rd_err *err)
{
    struct durable *durable = r->durable;
    struct engine *engine = r->beside != NULL ? r->beside : durable->sessions->engine;
    const struct engine_env env = session_env(durable->sessions);
    struct engine_session session;
    struct engine_reply reply = {.proto = 2, .off = true};
    struct engine_effects fx = {.off = true};
    engine_session_init(&session, engine, ENGINE_MASTER);
    session.db = db;
    enum engine_status status =
        engine_apply(engine, &session, command->argc, command->argv, &env, &reply, &fx);
    bool ok = status != ENGINE_ELSEWHERE && !reply.error;
    if (!ok)
        rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "a command among the keys: %s",
                   reply.error ? reply.text : "it cannot run here");
    engine_session_done(&session);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
    return ok;
}

bool receive_update(void *ctx, unsigned db, struct rd_slice bytes, struct rd_err *err)
{
    struct receive *r = ctx;
    struct rd_src *src;
    struct rd_resp_reader *reader;
    struct resp_command command;
    if (!rd_src_open_memory(&src, bytes, NULL, err))
        return false;
    bool ok = rd_resp_reader_new(&reader, src, NULL, err);
    if (ok) {
        ok = rd_resp_reader_next(reader, &command) == RESP_COMMAND;
        if (!ok)
            rd_err_adopt(err, rd_resp_reader_err(reader));
        ok = ok && run(r, db, &command, err);
        rd_resp_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}
