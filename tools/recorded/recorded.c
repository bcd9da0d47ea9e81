#include "tools/recorded/recorded.h"

#include "history/touch.h"
#include "tools/cli/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void recorded_init(struct recorded *r, struct cli *cli)
{
    *r = (struct recorded){
        .cli = cli, .db = RECORDED_ANY_DB, .since_ms = INT64_MIN, .job = {.cli = cli}};
    vault_init(&r->vault, cli);
}

/* ---- where the data is ---- */

static bool is_log_folder(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;
    snprintf(dir, sizeof dir, "%s/appendonlydir", path);
    return stat(dir, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder "capture" or "appendonlydir" here, or this folder itself. */
static const char *look_here(void)
{
    if (rebuild_stream_is("."))
        return ".";
    if (rebuild_stream_is("capture"))
        return "capture";
    return is_log_folder(".") ? "appendonlydir" : ".";
}

static bool is_log(struct cli *cli, const char *folder)
{
    struct aof_job job = {.cli = cli, .path = folder};
    bool found = aof_job_find(&job, NULL);
    aof_job_done(&job);
    cli_hint(cli, "%s", ""); /* of another question */
    return found;
}

static bool find_path(struct recorded *r, struct rd_err *err)
{
    const char *in = r->in != NULL ? r->in : look_here();
    if (rebuild_stream_is(in)) {
        snprintf(r->path, sizeof r->path, "%s", in);
        return true;
    }
    r->job.path = in;
    if (r->in == NULL && !is_log(r->cli, in))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "there is no capture and no log in the current folder: use --in");
    if (!aof_job_find(&r->job, err))
        return false;
    if (r->job.is_stdin)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "standard input cannot be read more than once");
    return !r->job.has_manifest || !r->job.in_folder
               ? (snprintf(r->path, sizeof r->path, "%s", r->job.path), true)
               : aof_job_full_path(&r->job, r->job.name, r->path, sizeof r->path, err);
}

/* ---- where the indexes are ---- */

static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Users of services have a home that does not exist, and that must stay so. */
static bool is_folder(const char *path)
{
    struct stat stat_buf;
    return path != NULL && path[0] == '/' && stat(path, &stat_buf) == 0 &&
           S_ISDIR(stat_buf.st_mode);
}

const char *recorded_cache(struct recorded *r)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int len = r->index_dir != NULL ? snprintf(r->folder, sizeof r->folder, "%s", r->index_dir)
              : cache != NULL && cache[0] == '/'
                  ? snprintf(r->folder, sizeof r->folder, "%s/redoubt/keys", cache)
              : is_folder(home)
                  ? snprintf(r->folder, sizeof r->folder, "%s/.cache/redoubt/keys", home)
                  : snprintf(r->folder, sizeof r->folder, "/var/cache/redoubt/keys");
    return len >= 0 && (size_t)len < sizeof r->folder && make_folders(r->folder) ? r->folder : NULL;
}

/* The folder of a capture, if it can be written; else one for caches. Those of a target are not
 * kept by the tape. */
static const char *choose_folder(struct recorded *r)
{
    if (r->no_index || r->config != NULL)
        return NULL;
    if (r->index_dir == NULL && r->tape.is_capture && access(r->path, W_OK) == 0)
        return r->path;
    const char *cache = recorded_cache(r);
    if (cache == NULL)
        cli_note(r->cli, "no indexes are kept: cannot create %s",
                 rd_show_plain(rd_slice_str(r->folder)).s);
    return cache;
}

static void say_making(void *ctx, const struct history_part *part)
{
    struct recorded *r = ctx;
    cli_debug(r->cli, "making the index of %s", rd_show_plain(rd_slice_str(part->name)).s);
}

bool recorded_open(struct recorded *r, struct rd_err *err)
{
    uint64_t seed[2];
    if (r->config != NULL ? !recorded_open_target(r, err)
                          : !find_path(r, err) || !history_tape_open(&r->tape, r->path, err))
        return false;
    r->is_open = true;
    cli_seed(seed);
    memcpy(r->indexes.salt, seed, sizeof r->indexes.salt);
    r->indexes.folder = choose_folder(r);
    r->indexes.making = say_making;
    r->indexes.ctx = r;
    return true;
}

static void close_data(struct recorded *r)
{
    if (r->is_open) {
        if (r->indexes.failed.code != RD_ERR_OK)
            cli_note(r->cli, "an index could not be kept: %s", r->indexes.failed.text);
        history_tape_close(&r->tape);
    }
    r->is_open = false;
    history_who_free(r->who);
    r->who = NULL;
    backup_extract_done(&r->extract);
    if (r->has_open)
        backup_close(&r->open);
    r->has_open = false;
}

bool recorded_again(struct recorded *r, struct rd_err *err)
{
    char text[400];
    if (err->reason.id != BACKUP_REASON_INDEX || r->distrusted)
        return false;
    r->distrusted = true;
    rd_err_render(err, text, sizeof text);
    cli_warn(r->cli, "%s: indexes are not used", text);
    rd_err_reset(err);
    close_data(r);
    history_names_done(&r->names);
    return true;
}

void recorded_close(struct recorded *r)
{
    close_data(r);
    vault_done(&r->vault);
    history_names_done(&r->names);
    aof_job_done(&r->job);
}

bool recorded_add_monitor(void *ctx, const char *value, struct rd_err *err)
{
    struct recorded *r = ctx;
    if (r->n_monitor_files == RECORDED_MONITOR_FILES)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many files");
    r->monitor_files[r->n_monitor_files++] = value;
    return true;
}

/* ---- keys ---- */

struct collecting {
    recorded_name_fn each;
    void *ctx;
    struct rd_err *err;
};

bool recorded_matches(const struct recorded *r, struct rd_slice name)
{
    size_t len = r->prefix != NULL ? strlen(r->prefix) : 0;
    return (r->prefix == NULL || (name.len >= len && memcmp(name.ptr, r->prefix, len) == 0)) &&
           (r->match == NULL || filter_glob(rd_slice_str(r->match), name));
}

static bool collect_command(void *ctx, const struct history_command *command, struct rd_err *err)
{
    struct collecting *c = ctx;
    const struct resp_command *cmd = command->line;
    const struct rebuild_line line = {engine_command_resolve(cmd->argv, cmd->argc), cmd->argc,
                                      cmd->argv};
    if (command->kind == REPL_WRITE)
        history_touch_of(&line, c->each, c->ctx);
    return err->code == RD_ERR_OK;
}

static bool collect_records(const struct collecting *c, struct history_tape *tape, size_t part)
{
    struct history_records records;
    struct rdb_event ev;
    if (!history_tape_snapshot(tape, part, NULL, &records, c->err))
        return false;
    while (rdb_reader_next(records.reader, &ev) == RDB_EVENT)
        if (ev.kind == RDB_KEY &&
            (!c->each(c->ctx, ev.key.name) || rdb_reader_skip_value(records.reader) == RDB_FAIL))
            break;
    if (c->err->code == RD_ERR_OK)
        rd_err_adopt(c->err, rdb_reader_err(records.reader));
    history_records_close(&records);
    return c->err->code == RD_ERR_OK;
}

bool recorded_each_name(struct recorded *r, recorded_name_fn each, void *ctx, struct rd_err *err)
{
    struct collecting c = {each, ctx, err};
    for (size_t i = 0; i < r->tape.n; i++)
        if (!(r->tape.parts[i].kind == HISTORY_SNAPSHOT
                  ? collect_records(&c, &r->tape, i)
                  : history_tape_read(&r->tape, i, NULL, collect_command, &c, err)))
            return false;
    return true;
}

enum { NAMES_MAX = 100000 };

struct matching {
    struct recorded *r;
    struct rd_err *err;
};

static bool add_matching(void *ctx, struct rd_slice name)
{
    struct matching *m = ctx;
    if (!recorded_matches(m->r, name))
        return true;
    if (m->r->names.n >= NAMES_MAX && !history_names_has(&m->r->names, name))
        return rd_err_set(m->err, RD_ERR_LIMIT, RD_NO_OFFSET,
                          "more than %d keys match: use a longer prefix", NAMES_MAX);
    return history_names_add(&m->r->names, name, NULL, m->err);
}

bool recorded_names_any(const struct recorded *r)
{
    return r->cli->n_args > 0 || r->prefix != NULL || r->match != NULL;
}

bool recorded_add_arguments(struct recorded *r, struct rd_err *err)
{
    for (size_t i = 0; i < r->cli->n_args; i++)
        if (!history_names_add(&r->names, rd_slice_str(r->cli->args[i]), NULL, err))
            return false;
    return true;
}

bool recorded_add_names(struct recorded *r, struct rd_err *err)
{
    if (!recorded_add_arguments(r, err))
        return false;
    return (r->prefix == NULL && r->match == NULL) ||
           recorded_each_name(r, add_matching, &(struct matching){r, err}, err);
}

/* ---- places and times ---- */

struct recorded_text recorded_place(const struct recorded *r, struct history_place place)
{
    struct recorded_text ret;
    const struct history_part *part = &r->tape.parts[place.part];
    if (r->tape.is_capture)
        snprintf(ret.s, sizeof ret.s, "%" PRIu64 ":%" PRIu64, part->chapter, place.offset);
    else
        snprintf(ret.s, sizeof ret.s, "%s:%" PRIu64, rd_show_plain(rd_slice_str(part->name)).s,
                 place.offset);
    return ret;
}

bool recorded_find_place(const struct recorded *r, const char *text, struct history_place *ret,
                         struct rd_err *err)
{
    struct rebuild_place place;
    if (!rebuild_place_parse(&place, text, err))
        return false;
    for (size_t i = r->tape.n; i-- > 0;) {
        const struct history_part *part = &r->tape.parts[i];
        char chapter[24];
        snprintf(chapter, sizeof chapter, "%" PRIu64, part->chapter);
        if (part->kind == HISTORY_SNAPSHOT || place.number < part->start ||
            place.number >= part->end ||
            (place.file[0] != '\0' &&
             strcmp(place.file, r->tape.is_capture ? chapter : part->name) != 0))
            continue;
        *ret = (struct history_place){i, place.number};
        return true;
    }
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "nothing is recorded at %.100s", text);
}

struct rd_shown recorded_time(int64_t time_us)
{
    struct rd_shown none = {"-"};
    return time_us == INT64_MIN ? none : rd_show_time(time_us / 1000);
}

bool recorded_is_before(struct history_place a, struct history_place b)
{
    return a.part != b.part ? a.part < b.part : a.offset < b.offset;
}
