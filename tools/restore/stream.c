#include "backup/replay.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/priv.h"

bool restore_replay(struct restore *run, struct rd_sink *out, struct rd_err *err)
{
    struct rebuild_data data;
    snapshot_in_watch_memory(run->cli);
    rebuild_data_begin(&data, cli_now_ms() * 1000);
    data.keep_unknown = run->keep_unknown;
    bool ok = backup_replay(&run->plan, &data, err) && rebuild_data_save(&data, out, err);
    restore_count(run, &data.counts);
    rebuild_data_end(&data);
    return ok;
}
