/* DEBUG RELOAD and DEBUG LOADAOF: the effects of a restart, without one. */
#include <stdlib.h>

#include "server/client/client.h"
#include "server/core/log.h"
#include "server/persist/priv.h"

const char *persist_debug_reload(struct server *srv, bool save, bool flush, bool merge)
{
    /* A background snapshot is older, and would replace the one that is loaded. */
    if (save && persist_info(srv)->child == PERSIST_CHILD_RDB)
        persist_kill_child(srv);
    if (save && !persist_save(srv))
        return "ERR";
    if (flush)
        persist_empty(srv);
    enum persist_loaded loaded = persist_load_snapshot(srv, srv->settings.dbfilename, merge);
    persist_reset_dirty(srv, engine_stats(srv->engine)->dirty);
    /* The old data are gone: the server must not continue with half of the new data. */
    if (loaded == PERSIST_FAILED)
        exit(1);
    if (loaded != PERSIST_LOADED)
        return "ERR Error trying to load the RDB dump, check server logs";
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
