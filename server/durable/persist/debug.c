/* DEBUG RELOAD and DEBUG LOADAOF: the effects of a restart, without one. */
#include <stdlib.h>

#include "engine/library.h"
#include "engine/script.h"
#include "server/session/client/client.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

/* Restores the previous libraries beside those of the snapshot. False: both have a library of the
 * same name, which is not allowed. */
static bool join_libraries(struct durable *durable, const struct rd_buf *before, bool merge)
{
    struct rd_buf loaded = {0};
    const char *why;
    engine_library_dump(durable->sessions->engine, &loaded);
    bool ok = engine_library_restore(durable->sessions->engine, rd_buf_slice(before),
                                     ENGINE_LIBRARY_FLUSH, &why) &&
              engine_library_restore(durable->sessions->engine, rd_buf_slice(&loaded),
                                     merge ? ENGINE_LIBRARY_REPLACE : ENGINE_LIBRARY_APPEND, &why);
    rd_buf_done(&loaded);
    if (!ok)
        log_warning("Failed creating a library of functions: %s", why);
    return ok;
}

static bool libraries_are_sound(struct durable *durable)
{
    struct rd_err err = {0};
    if (engine_script_check_libraries(durable->sessions->engine, &err))
        return true;
    log_warning("Failed creating a library of functions: %s", err.text);
    return false;
}

const char *persist_debug_reload(struct durable *durable, bool save, bool flush, bool merge,
                                 struct engine_effects *fx)
{
    /* A background snapshot is older, and would replace the one that is loaded. */
    if (save && persist_info(durable)->child == PERSIST_CHILD_RDB)
        persist_kill_child(durable);
    if (save && !persist_save(durable))
        return "ERR";
    struct rd_buf before = {0};
    if (flush)
        persist_empty(durable);
    else
        engine_library_dump(durable->sessions->engine, &before);
    /* Without flush, the data may have a key of the same name. */
    persist_state(durable)->reload_fx = flush ? fx : NULL;
    enum persist_loaded loaded =
        persist_load_snapshot(durable, durable->loop->settings.dbfilename, merge);
    persist_state(durable)->reload_fx = NULL;
    persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    /* The old data is gone: the server must not continue with half of the new data. */
    if (loaded == PERSIST_FAILED || loaded == PERSIST_DAMAGED)
        exit(1);
    bool ok = loaded == PERSIST_LOADED && (flush || join_libraries(durable, &before, merge)) &&
              libraries_are_sound(durable);
    rd_buf_done(&before);
    if (!ok)
        return "ERR Error trying to load the RDB dump";
    log_warning("DB reloaded by DEBUG RELOAD");
    return NULL;
}

const char *persist_debug_loadaof(struct durable *durable)
{
    persist_flush_all(durable);
    persist_empty(durable);
    enum persist_loaded loaded = persist_load_log(durable);
    persist_reset_dirty(durable, engine_stats(durable->sessions->engine)->dirty);
    if (loaded == PERSIST_FAILED)
        exit(1);
    log_warning("Append Only File loaded by DEBUG LOADAOF");
    return NULL;
}
