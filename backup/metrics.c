#include "backup/metrics.h"

#include "backup/system.h"

#include <inttypes.h>
#include <stdio.h>

bool backup_everywhere(const struct backup_open *open)
{
    for (size_t i = 0; i < open->n; i++)
        if (open->errs[i].code != RD_ERR_OK)
            return false;
    return true;
}

bool backup_metrics_check(const struct backup_target *target, struct rd_err *err)
{
    const char *sets = backup_get(target, BACKUP_KEY_METRICS_FILE);
    const char *stream = backup_get(target, BACKUP_KEY_ARCHIVE_METRICS_FILE);
    return sets == NULL || stream == NULL || strcmp(sets, stream) != 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "metrics-file and archive-metrics-file must be different files");
}

struct figure {
    const char *name, *help;
    uint64_t value;
    bool seconds; /* of milliseconds */
};

static bool put_figure(struct rd_sink *out, const char *target, const struct figure *f)
{
    char line[600];
    int len =
        snprintf(line, sizeof line, "# HELP redoubt_backup_%s %s\n# TYPE redoubt_backup_%s gauge\n",
                 f->name, f->help, f->name);
    rd_sink_write(out, line, (size_t)len);
    len = snprintf(line, sizeof line, "redoubt_backup_%s{target=\"%s\"} ", f->name, target);
    rd_sink_write(out, line, (size_t)len);
    if (f->seconds)
        len = snprintf(line, sizeof line, "%" PRIu64 ".%03u\n", f->value / 1000,
                       (unsigned)(f->value % 1000));
    else
        len = snprintf(line, sizeof line, "%" PRIu64 "\n", f->value);
    return rd_sink_write(out, line, (size_t)len);
}

struct summary {
    const struct archive_set *oldest, *newest;
    uint64_t n, bytes;
};

/* The newest one is not that of a clock that was ahead: its age would hide that none follows. */
static void add_sets(struct summary *sum, struct archive_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++) {
        const struct archive_set *set = &sets->sets[i];
        if (!archive_set_good(set))
            continue;
        sum->n++;
        sum->bytes += set->bytes;
        if (sum->oldest == NULL)
            sum->oldest = set;
    }
    sum->newest = archive_sets_newest(sets, backup_now_ms());
}

static bool put_figures(struct rd_sink *out, const char *target, const struct figure *figures,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_figure(out, target, &figures[i]);
    return rd_sink_err(out)->code == RD_ERR_OK;
}

static bool put_run(struct rd_sink *out, const char *target, bool good)
{
    const struct figure figures[] = {
        {"last_run_timestamp_seconds", "Time of the last backup.", (uint64_t)backup_now_ms(), true},
        {"last_run_success", "Whether the last backup succeeded.", good, false},
    };
    return put_figures(out, target, figures, sizeof figures / sizeof *figures);
}

static bool put_sets(struct rd_sink *out, const char *target, const struct summary *sum)
{
    static const struct archive_set none;
    const struct archive_set *newest = sum->newest != NULL ? sum->newest : &none;
    const struct archive_set *oldest = sum->oldest != NULL ? sum->oldest : &none;
    uint64_t stored = 0;
    for (size_t i = 0; i < newest->m.n_files; i++)
        stored += archive_file_bytes(&newest->m.files[i]);
    const struct figure figures[] = {
        {"last_success_timestamp_seconds", "Time at which the newest good set was finished.",
         (uint64_t)newest->m.end_ms, true},
        {"last_success_duration_seconds", "Duration of that backup.",
         (uint64_t)(newest->m.end_ms - newest->m.begin_ms), true},
        {"last_success_bytes", "Size of that set in the repository.", stored, false},
        {"last_success_keys", "Keys in that set.", newest->m.keys, false},
        {"oldest_restore_point_timestamp_seconds", "Time at which the oldest good set was begun.",
         (uint64_t)oldest->m.begin_ms, true},
        {"sets", "Good sets in the repository.", sum->n, false},
        {"bytes", "Size of the good sets.", sum->bytes, false},
    };
    return put_figures(out, target, figures, sizeof figures / sizeof *figures);
}

static bool put_pause(struct rd_sink *out, const char *target, bool paused)
{
    const struct figure figure = {"paused", "Whether backups are paused.", paused, false};
    return put_figures(out, target, &figure, 1);
}

/* ---- the file ---- */

enum { FIGURES_MAX = 65536 };

/* The figures that an earlier run wrote, if there are any, but for those with this name. */
static bool keep_figures(struct rd_sink *out, const char *path, const char *but_for)
{
    struct rd_buf text = {0};
    struct rd_slice left = {0};
    if (backup_read_file(path, FIGURES_MAX, &text, NULL))
        left = rd_buf_slice(&text);
    while (left.len > 0) {
        const uint8_t *end = memchr(left.ptr, '\n', left.len);
        size_t len = end != NULL ? (size_t)(end - left.ptr) + 1 : left.len;
        if (end != NULL && memmem(left.ptr, len, but_for, strlen(but_for)) == NULL)
            rd_sink_write(out, left.ptr, len);
        left = rd_slice(left.ptr + len, left.len - len);
    }
    rd_buf_done(&text);
    return rd_sink_err(out)->code == RD_ERR_OK;
}

/* Lists one repository: one that has the set, rather than one that failed. */
static bool list_sets(struct backup_open *open, struct archive_sets *ret)
{
    for (unsigned failed = 0; failed < 2; failed++)
        for (size_t i = 0; i < open->n; i++)
            if (open->stores[i] != NULL && (open->errs[i].code != RD_ERR_OK) == (failed != 0) &&
                archive_repo_list(&open->repos[i], ret, NULL))
                return true;
    return false;
}

bool backup_metrics(const struct backup_target *target, struct backup_open *open, bool good,
                    struct rd_err *err)
{
    const char *path = backup_get(target, BACKUP_KEY_METRICS_FILE);
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .mode = 0644);
    struct archive_sets sets = {0};
    struct summary sum = {0};
    struct rd_sink *out;
    if (path == NULL)
        return true;
    bool listed = list_sets(open, &sets);
    add_sets(&sum, &sets);
    bool ok = rd_sink_open_file(&out, path, &opts, err);
    if (ok) {
        put_run(out, target->name, good);
        if (listed) {
            put_sets(out, target->name, &sum);
            put_pause(out, target->name, false);
        } else {
            keep_figures(out, path, "redoubt_backup_last_run_");
        }
        ok = rd_sink_close(out, err);
    }
    archive_sets_done(&sets);
    return ok;
}

bool backup_metrics_pause(const struct backup_target *target, bool paused, struct rd_err *err)
{
    const char *path = backup_get(target, BACKUP_KEY_METRICS_FILE);
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .mode = 0644);
    struct rd_sink *out;
    if (path == NULL)
        return true;
    if (!rd_sink_open_file(&out, path, &opts, err))
        return false;
    keep_figures(out, path, "redoubt_backup_paused");
    put_pause(out, target->name, paused);
    return rd_sink_close(out, err);
}
