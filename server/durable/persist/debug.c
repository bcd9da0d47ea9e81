/* DEBUG RELOAD and DEBUG LOADAOF: the effects of a restart, without one. */
#include <stdlib.h>

#include "engine/library.h"
#include "engine/script.h"
#include "server/session/client/client.h"
#include "server/loop/log.h"
#include "server/durable/persist/priv.h"

/* Restores the previous libraries beside those of the snapshot. False: both have a library of the
 * same name, which is not allowed. */
static bool join_libraries(struct server *srv, const struct rd_buf *before, bool merge)
{
    struct rd_buf loaded = {0};
    const char *why;
    engine_library_dump(srv->engine, &loaded);
    bool ok =
        engine_library_restore(srv->engine, rd_buf_slice(before), ENGINE_LIBRARY_FLUSH, &why) &&
        engine_library_restore(srv->engine, rd_buf_slice(&loaded),
                               merge ? ENGINE_LIBRARY_REPLACE : ENGINE_LIBRARY_APPEND, &why);
    rd_buf_done(&loaded);
    if (!ok)
        log_warning("Failed creating a library of functions: %s", why);
    return ok;
}

static bool libraries_are_sound(struct server *srv)
{
    struct rd_err err = {0};
    if (engine_script_check_libraries(srv->engine, &err))
        return true;
    log_warning("Failed creating a library of functions: %s", err.text);
    return false;
}

const char *persist_debug_reload(struct server *srv, bool save, bool flush, bool merge)
{
    /* A background snapshot is older, and would replace the one that is loaded. */
    if (save && persist_info(srv)->child == PERSIST_CHILD_RDB)
        persist_kill_child(srv);
    if (save && !persist_save(srv))
        return "ERR";
    struct rd_buf before = {0};
    if (flush)
        persist_empty(srv);
    else
        engine_library_dump(srv->engine, &before);
    enum persist_loaded loaded = persist_load_snapshot(srv, srv->settings.dbfilename, merge);
    persist_reset_dirty(srv, engine_stats(srv->engine)->dirty);
    /* The old data is gone: the server must not continue with half of the new data. */
    if (loaded == PERSIST_FAILED)
        exit(1);
    bool ok = loaded == PERSIST_LOADED && (flush || join_libraries(srv, &before, merge)) &&
              libraries_are_sound(srv);
    rd_buf_done(&before);
    if (!ok)
        return "ERR Error trying to load the RDB dump";
    log_warning("DB reloaded by DEBUG RELOAD");
    return NULL;
}

const char *persist_debug_loadaof(struct server *srv)
{
    persist_flush_all(srv);
    persist_empty(srv);
    enum persist_loaded loaded = persist_load_log(srv);
    persist_reset_dirty(srv, engine_stats(srv->engine)->dirty);
    if (loaded == PERSIST_FAILED)
        exit(1);
    log_warning("Append Only File loaded by DEBUG LOADAOF");
    return NULL;
}
