/* rdb.c - the snapshot alone: asked for, verified while it is written, and given its name
 * when it is whole and sound.
 */
#include "base/digest.h"
#include "rdb/version.h"
#include "tools/capture/tool.h"
#include "tools/cli/watch.h"
#include "capture/download.h"
#include "data/sound.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"

struct snapshot {
    struct capture_tool *tool;
    struct client_target target;
    struct rd_watch watch;
    struct capture_download download;
    struct sound sound;
    struct rdb_release writer;
    char sha256[RD_DIGEST_HEX];
};

static bool find_target(struct snapshot *s, struct rd_err *err)
{
    struct capture *c = &s->tool->capture;
    if (c->n_sentinels > 0)
        return capture_hosts_find_master(c, &s->target, err);
    s->target = c->target;
    c->target.user = c->target.password = NULL;
    return true;
}

static bool begin(struct snapshot *s, struct rd_err *err)
{
    struct capture_tool *tool = s->tool;
    struct capture *c = &tool->capture;
    if (!find_target(s, err))
        return false;
    s->watch = cli_watch(tool->cli);
    s->download =
        (struct capture_download){.watch = &s->watch,
                                  .target = &s->target,
                                  .replica_version = c->replica_version,
                                  .rdb_filter = tool->functions_only ? "functions" : NULL};
    s->sound.name = s->target.name;
    return capture_download_begin(&s->download, err);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    struct snapshot *s = ctx;
    char tmp[RD_NUM_I64_MAX];
    if (ev->kind == RDB_AUX)
        rdb_release_take(&s->writer, ev->aux.name, rdb_string_bytes(&ev->aux.value, tmp));
}

static bool check(struct snapshot *s, struct rd_err *err)
{
    struct rd_src *src;
    uint8_t sum[RD_DIGEST_MAX];
    cli_seed(s->sound.seed);
    s->sound.event = on_event;
    s->sound.ctx = s;
    if (!rd_digest_new(&s->download.digest, RD_DIGEST_SHA256, err))
        return false;
    bool ok = capture_download_source(&s->download, &src, err);
    if (ok) {
        ok = sound_check(&s->sound, src, err) && rd_digest_end(s->download.digest, sum, err);
        rd_src_close(src);
    }
    if (ok)
        rd_digest_hex(s->sha256, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
    rd_digest_free(s->download.digest);
    s->download.digest = NULL;
    return ok;
}

static bool work(struct snapshot *s, struct rd_err *err)
{
    struct capture_tool *tool = s->tool;
    struct rd_sink *out;
    if (!begin(s, err)) {
        capture_report_hint(tool->cli, err);
        return false;
    }
    if (!cli_open_out(tool->cli, tool->rdb_only, tool->force, true, &out, err))
        return false;
    s->download.copy = out;
    bool ok = check(s, err);
    cli_progress_end(tool->cli);
    if (ok)
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    if (!s->sound.res.damaged)
        capture_report_hint(tool->cli, err);
    return false;
}

static void put_json(const struct snapshot *s, const char *name)
{
    struct json_write *json = &s->tool->cli->out;
    const struct rdb_check_result *res = &s->sound.res;
    const struct capture_download *d = &s->download;
    bool placed = repl_replid_is_set(&d->replid), summed = res->sum == RDB_SUM_OK;
    const char *version = s->writer.version[0] != '\0' ? s->writer.version : NULL;
    char crc64[17];
    snprintf(crc64, sizeof crc64, "%016" PRIx64, res->stored);
    json_put_str(json, "target", s->target.name);
    json_put_str(json, "file", name);
    json_put_uint(json, "bytes", d->size);
    json_put_uint(json, "keys", res->keys);
    json_put_uint(json, "functions", res->functions);
    json_put_bool(json, "verified", true);
    json_put_str(json, "replid", placed ? d->replid.hex : NULL);
    json_put_offset(json, "offset", placed ? d->offset : RD_NO_OFFSET);
    json_put_str(json, "server", version == NULL ? NULL : s->writer.valkey ? "valkey" : "redis");
    json_put_str(json, "server_version", version);
    json_put_str(json, "dialect", rdb_dialect_name(res->dialect));
    json_put_int(json, "rdb_version", res->version);
    json_put_str(json, "sha256", s->sha256);
    json_put_str(json, "crc64", summed ? crc64 : NULL);
}

static void report_snapshot(const struct snapshot *s)
{
    struct cli *cli = s->tool->cli;
    const char *name = s->tool->rdb_only;
    uint64_t keys = s->sound.res.keys, functions = s->sound.res.functions;
    if (cli->json) {
        put_json(s, name);
    } else if (strcmp(name, "-") != 0 && !cli->quiet) {
        printf("%s: %s, %s key%s, %s librar%s, verified\n", name, rd_show_bytes(s->download.size).s,
               rd_show_count(keys).s, rd_show_plural(keys), rd_show_count(functions).s,
               functions == 1 ? "y" : "ies");
    }
}

int capture_tool_rdb(struct capture_tool *tool)
{
    struct snapshot s = {.tool = tool};
    struct rd_err err = {0};
    bool ok = work(&s, &err);
    capture_download_end(&s.download);
    if (ok)
        report_snapshot(&s);
    client_target_done(&s.target);
    return ok ? CLI_OK : cli_fail(tool->cli, &err);
}
