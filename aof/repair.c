#include "aof/repair_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof/reader.h"
#include "aof/timeline.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/os.h"
#include "base/pump.h"
#include "base/sized.h"

enum { TICK = 4096 /* events */ };

void aof_repair_init(struct aof_repair *plan)
{
    *plan = (struct aof_repair){0};
}

void aof_repair_done(struct aof_repair *plan)
{
    struct aof_repair_state *state = plan->state;
    if (state != NULL) {
        for (size_t i = 0; i < state->n_steps; i++)
            rd_free(state->steps[i].name);
        rd_free(state->steps);
        aof_manifest_done(&state->manifest);
        rd_free(state);
    }
    aof_repair_init(plan);
}

static bool begin_plan(struct aof_repair *plan, struct rd_err *err)
{
    if (plan->state != NULL)
        return true;
    plan->state = rd_calloc(1, sizeof *plan->state);
    if (plan->state == NULL)
        return rd_err_nomem(err, sizeof *plan->state);
    plan->state->time_s = plan->state->base_time = AOF_NO_TIME;
    aof_manifest_init(&plan->state->manifest);
    return true;
}

size_t aof_repair_count(const struct aof_repair *plan)
{
    return plan->state != NULL ? plan->state->n_steps : 0;
}

const struct aof_repair_step *aof_repair_step(const struct aof_repair *plan, size_t index)
{
    return &plan->state->steps[index];
}

const struct aof_manifest *aof_repair_manifest(const struct aof_repair *plan)
{
    return plan->state != NULL && plan->state->swap ? &plan->state->manifest : NULL;
}

int64_t aof_repair_time(const struct aof_repair *plan)
{
    return plan->state != NULL ? plan->state->time_s : AOF_NO_TIME;
}

/* ---- steps ---- */

static bool add_step(struct aof_repair_state *plan, enum aof_repair_kind kind, const char *name,
                     uint64_t size, uint64_t to, struct rd_err *err)
{
    size_t len = strlen(name) + 1;
    if (plan->n_steps == plan->cap_steps) {
        size_t cap = plan->cap_steps == 0 ? 4 : 2 * plan->cap_steps;
        void *bigger = rd_realloc(plan->steps, cap * sizeof *plan->steps);
        if (bigger == NULL)
            return rd_err_nomem(err, cap * sizeof *plan->steps);
        plan->steps = bigger;
        plan->cap_steps = cap;
    }
    char *copy = rd_alloc(len);
    if (copy == NULL)
        return rd_err_nomem(err, len);
    memcpy(copy, name, len);
    plan->steps[plan->n_steps++] =
        (struct aof_repair_step){.kind = kind, .name = copy, .size = size, .to = to};
    return true;
}

static bool size_of(const struct aof_repair_log *log, const struct aof_file *file, uint64_t *ret,
                    struct rd_err *err)
{
    struct rd_src *src;
    if (!log->open(log->ctx, file, &src, err)) {
        rd_err_origin(err, file != NULL ? file->name : log->name);
        return false;
    }
    *ret = rd_src_size(src);
    rd_src_close(src);
    return true;
}

static bool is_read(const struct aof_file *file)
{
    return file->type != AOF_HISTORY;
}

/* The index in the manifest of file `index` in reading order. */
static size_t position_of(const struct aof_manifest *m, size_t index)
{
    size_t at = 0;
    for (; at < aof_manifest_count(m); at++)
        if (is_read(aof_manifest_file(m, at)) && index-- == 0)
            break;
    return at;
}

/* Removes the files from `first` on, in reading order, from the manifest. */
static bool keep_before(struct aof_repair_state *plan, const struct aof_manifest *m, size_t first,
                        struct rd_err *err)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        if ((i < first || !is_read(aof_manifest_file(m, i))) &&
            aof_manifest_add(&plan->manifest, aof_manifest_file(m, i)) == NULL)
            return rd_err_nomem(err, sizeof(struct aof_file));
    plan->swap = true;
    return true;
}

static bool has_file_before(const struct aof_manifest *m, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_read(aof_manifest_file(m, i)))
            return true;
    return false;
}

static bool has_file_from(const struct aof_manifest *m, size_t at)
{
    for (size_t i = at; i < aof_manifest_count(m); i++)
        if (is_read(aof_manifest_file(m, i)))
            return true;
    return false;
}

/* Truncates file `index` in reading order to `to` bytes. Later files are removed from the manifest,
 * and the file itself too if it becomes empty and another file remains. */
static bool cut_at(struct aof_repair_state *plan, const struct aof_repair_log *log, size_t index,
                   uint64_t to, struct rd_err *err)
{
    const struct aof_manifest *m = log->manifest;
    uint64_t size;
    size_t at = m != NULL ? position_of(m, index) : 0;
    if (!size_of(log, m != NULL ? aof_manifest_file(m, at) : NULL, &size, err))
        return false;
    const char *name = m != NULL ? aof_manifest_file(m, at)->name : log->name;
    bool aside = to == 0 && m != NULL && has_file_before(m, at);
    size_t first = aside ? at : at + 1; /* removed from the manifest */
    if (!aside && to < size && !add_step(plan, AOF_REPAIR_CUT, name, size, to, err))
        return false;
    if (m == NULL || !has_file_from(m, first))
        return true;
    for (size_t i = first; i < aof_manifest_count(m); i++)
        if (is_read(aof_manifest_file(m, i)) &&
            (!size_of(log, aof_manifest_file(m, i), &size, err) ||
             !add_step(plan, AOF_REPAIR_ASIDE, aof_manifest_file(m, i)->name, size, 0, err)))
            return false;
    return keep_before(plan, m, first, err);
}

/* ---- plans ---- */

bool aof_repair_plan_fix(struct aof_repair *plan, const struct aof_check_result *checked,
                         struct rd_err *err)
{
    if (!begin_plan(plan, err))
        return false;
    if (checked->n_files == 0)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the log has no file");
    const struct aof_check_file *last = checked->files[checked->n_files - 1];
    for (size_t i = 0; i < checked->n_files; i++) {
        const struct aof_check_file *f = checked->files[i];
        const char *why = f->verdict == AOF_VERDICT_MISSING   ? "the file is missing"
                          : f->verdict == AOF_VERDICT_NOT_LOG ? "this is not a log"
                          : f->text_mode != AOF_TEXT_NONE
                              ? "its line ends were changed, and nothing in it is torn"
                          : f->snapshot_bad         ? "the snapshot in it is damaged"
                          : f->damaged && f != last ? "it is not the last file of the log"
                                                    : NULL;
        if (why == NULL)
            continue;
        rd_err_set(err, RD_ERR_CORRUPT, f->broken_at, "truncating it does not repair it: %s", why);
        rd_err_origin(err, f->name);
        return false;
    }
    if (last->verdict == AOF_VERDICT_WRITTEN) {
        rd_err_set(err, RD_ERR_LOCKED, last->ok_up_to, "the file is being written");
        rd_err_origin(err, last->name);
        return false;
    }
    return !last->damaged || last->ok_up_to >= last->size ||
           add_step(plan->state, AOF_REPAIR_CUT, last->name, last->size, last->ok_up_to, err);
}

/* A log that is read up to the position of the cut. */
struct search {
    struct aof_repair_state *plan;
    const struct aof_repair_log *log;
    struct aof_reader *reader;
    struct rd_src *src; /* of a log that is one file */
    struct rd_src *now; /* that is read */
    struct rd_err *err;
};

static bool open_file(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    struct search *s = ctx;
    if (!s->log->open(s->log->ctx, file, ret, err))
        return false;
    s->now = *ret;
    return true;
}

static bool search_begin(struct search *s)
{
    const struct aof_reader_opts opts =
        AOF_READER_OPTS(.open = open_file, .ctx = s, .log = &AOF_LOG_OPTS(.names = true),
                        .rdb = &RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES));
    if (s->log->manifest != NULL)
        return aof_reader_new(&s->reader, s->log->manifest, &opts, s->err);
    if (!open_file(s, NULL, &s->src, s->err))
        return false;
    return aof_reader_new_file(&s->reader, s->src, &opts, s->err);
}

static void search_end(struct search *s)
{
    aof_reader_free(s->reader);
    rd_src_close(s->src);
}

static void search_tick(struct search *s, uint64_t *count)
{
    if (++*count % TICK == 0 && s->log->tick != NULL && s->now != NULL)
        s->log->tick(s->log->ctx, s->now);
}

static bool search_failed(struct search *s)
{
    const struct rd_err *err = aof_reader_err(s->reader);
    rd_err_adopt(s->err, err);
    if (s->log->manifest == NULL)
        rd_err_origin(s->err, s->log->name);
    return false;
}

/* ---- by time ---- */

/* The time at which the snapshot was saved. A failure occurs again when the log is read further. */
static void read_saved(struct aof_repair_state *plan, struct rdb_reader *r)
{
    struct rdb_event ev;
    char tmp[RD_NUM_I64_MAX];
    int64_t s;
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        if (ev.kind == RDB_AUX && rd_slice_is(ev.aux.name, "ctime") &&
            rd_num_get_i64(rdb_string_bytes(&ev.aux.value, tmp), &s))
            plan->base_time = s;
        else if (ev.kind == RDB_KEY)
            (void)rdb_reader_skip_value(r);
    }
}

/* True: continue. */
static bool time_event(struct search *s, const struct aof_event *ev, struct aof_timeline *line,
                       bool *ret_cut)
{
    struct aof_repair_state *plan = s->plan;
    const char *name = s->log->manifest != NULL ? ev->name : s->log->name;
    bool in_base = ev->file != NULL && ev->file->type == AOF_BASE;
    int64_t t;
    if (ev->kind == AOF_RDB) {
        read_saved(plan, ev->snapshot);
        return aof_timeline_snapshot(line, plan->base_time, name, s->err);
    }
    if (ev->kind == AOF_COMMAND || ev->kind == AOF_LONG)
        aof_timeline_command(line, in_base);
    if (ev->kind != AOF_ANNOTATION || !aof_annotation_time(ev->entry.bytes, &t))
        return true;
    plan->annotations++;
    enum aof_timeline_step step = aof_timeline_annotation(line, t, in_base, name, s->err);
    plan->base_time = line->base_s;
    if (step != AOF_TIMELINE_STOP)
        return step == AOF_TIMELINE_GO_ON;
    plan->time_s = t;
    *ret_cut = true;
    return cut_at(plan, s->log, ev->index, ev->in_multi ? ev->multi : ev->offset, s->err);
}

static bool plan_time(struct search *s, int64_t time_s)
{
    struct aof_timeline line;
    struct aof_event ev;
    enum aof_status st;
    uint64_t count = 0;
    bool cut = false;
    aof_timeline_init(&line, time_s);
    while ((st = aof_reader_next(s->reader, &ev)) == AOF_EVENT) {
        if (!time_event(s, &ev, &line, &cut))
            return false;
        if (cut)
            return true;
        search_tick(s, &count);
    }
    return st == AOF_END ? aof_timeline_end(&line, s->err) : search_failed(s);
}

bool aof_repair_plan_time(struct aof_repair *plan, const struct aof_repair_log *log, int64_t time_s,
                          struct rd_err *err)
{
    struct aof_repair_log own;
    if (!rd_sized_copy(&own, sizeof own, log, err) || !begin_plan(plan, err))
        return false;
    struct search s = {.plan = plan->state, .log = &own, .err = err};
    bool ok = search_begin(&s) && plan_time(&s, time_s);
    search_end(&s);
    return ok;
}

/* ---- by offset ---- */

static size_t index_of(const struct aof_repair_log *log, const char *file)
{
    size_t index = 0, last = SIZE_MAX;
    if (log->manifest == NULL)
        return file == NULL || strcmp(file, log->name) == 0 ? 0 : SIZE_MAX;
    for (size_t i = 0; i < aof_manifest_count(log->manifest); i++) {
        if (!is_read(aof_manifest_file(log->manifest, i)))
            continue;
        if (file == NULL || strcmp(file, aof_manifest_file(log->manifest, i)->name) == 0)
            last = index;
        index++;
    }
    return last;
}

struct bounds {
    uint64_t below, above; /* or RD_NO_OFFSET */
};

static bool not_a_bound(struct search *s, const char *name, uint64_t offset, struct bounds b)
{
    char below[64] = "", above[64] = "";
    if (b.below != RD_NO_OFFSET)
        snprintf(below, sizeof below, "%" PRIu64, b.below);
    if (b.above != RD_NO_OFFSET)
        snprintf(above, sizeof above, "%s%" PRIu64, b.below != RD_NO_OFFSET ? " and " : "",
                 b.above);
    rd_err_set(s->err, RD_ERR_USAGE, RD_NO_OFFSET,
               "no command or transaction ends at byte %" PRIu64 "; the nearest ends are %s%s",
               offset, below, above);
    rd_err_origin(s->err, name);
    return false;
}

/* Reads the file up to the first end after `offset`. */
static bool find_bounds(struct search *s, size_t index, uint64_t offset, struct bounds *ret)
{
    struct aof_event ev;
    enum aof_status st;
    uint64_t count = 0;
    bool inside = false;
    while ((st = aof_reader_next(s->reader, &ev)) == AOF_EVENT) {
        search_tick(s, &count);
        if (ev.index < index)
            continue;
        if (ev.index > index)
            return true;
        if (ev.kind == AOF_FILE_BEGIN && ev.content == AOF_SNAPSHOT)
            continue;
        if (ev.kind == AOF_RDB) {
            read_saved(s->plan, ev.snapshot);
            continue;
        }
        inside = true;
        uint64_t safe = aof_reader_safe(s->reader);
        if (safe > offset) {
            ret->above = safe;
            return true;
        }
        ret->below = safe;
    }
    enum rd_err_code code = aof_reader_err(s->reader)->code;
    bool unread = code == RD_ERR_IO || code == RD_ERR_MEMORY;
    return st == AOF_END || (inside && !unread) || search_failed(s);
}

static bool plan_offset(struct search *s, size_t index, uint64_t offset)
{
    struct bounds b = {RD_NO_OFFSET, RD_NO_OFFSET};
    const struct aof_manifest *m = s->log->manifest;
    const char *name = m != NULL ? aof_manifest_file(m, position_of(m, index))->name : s->log->name;
    if (!find_bounds(s, index, offset, &b))
        return false;
    if (b.below != offset)
        return not_a_bound(s, name, offset, b);
    return cut_at(s->plan, s->log, index, offset, s->err);
}

bool aof_repair_plan_offset(struct aof_repair *plan, const struct aof_repair_log *log,
                            const char *file, uint64_t offset, struct rd_err *err)
{
    struct aof_repair_log own;
    if (!rd_sized_copy(&own, sizeof own, log, err) || !begin_plan(plan, err))
        return false;
    struct search s = {.plan = plan->state, .log = &own, .err = err};
    size_t index = index_of(&own, file);
    if (index == SIZE_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no file of the log has that name");
    bool ok = search_begin(&s) && plan_offset(&s, index, offset);
    search_end(&s);
    return ok;
}

/* ---- execution ---- */

bool aof_file_is_written(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool refused = fcntl(fd, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
    close(fd); /* releases the lease */
    return refused;
}

struct paths {
    char from[PATH_MAX], saved[PATH_MAX];
    const char *saved_name;
};

static bool make_paths(struct paths *p, const struct aof_repair_run *run, const char *name,
                       struct rd_err *err)
{
    int a = snprintf(p->from, sizeof p->from, "%s/%s", run->folder, name);
    int b = snprintf(p->saved, sizeof p->saved, "%s/%s%s", run->folder, name, run->suffix);
    p->saved_name = p->saved + strlen(run->folder) + 1;
    return (a > 0 && (size_t)a < sizeof p->from && b > 0 && (size_t)b < sizeof p->saved) ||
           rd_err_sys(err, ENAMETOOLONG, "%.100s", name);
}

static bool is_as_planned(const struct aof_repair_step *step, const char *path, struct rd_err *err)
{
    struct stat st;
    bool ok = true;
    if (lstat(path, &st) != 0)
        ok = rd_err_sys(err, errno, "stat");
    else if (!S_ISREG(st.st_mode))
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                        "%s: it is not changed; name the file that it leads to",
                        S_ISLNK(st.st_mode) ? "this is a symbolic link" : "not a regular file");
    else if ((uint64_t)st.st_size != step->size)
        ok = rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "its size changed since it was read");
    else if (aof_file_is_written(path))
        ok =
            rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "another process has it open for writing");
    if (!ok)
        rd_err_origin(err, step->name);
    return ok;
}

/* Returns when the copy is durable. */
static bool copy_file(const char *from, const char *to, struct rd_err *err)
{
    struct stat st;
    struct rd_src *src;
    if (stat(from, &st) != 0)
        return rd_err_sys(err, errno, "stat");
    if (!rd_src_open_file(&src, from, &RD_SRC_OPTS(.regular = true), err))
        return false;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.mode = st.st_mode & 07777);
    return rd_pump_to_file(src, to, &opts, err);
}

static bool sync_folder(const char *path, struct rd_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        rd_err_sys(err, errno, "fsync of the folder");
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool replace_manifest(const struct aof_repair_state *plan, const struct paths *p,
                             struct rd_err *err)
{
    struct stat st;
    struct rd_sink *sink;
    if (stat(p->from, &st) != 0)
        return rd_err_sys(err, errno, "stat");
    if (!copy_file(p->from, p->saved, err))
        return false;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .mode = st.st_mode & 07777);
    if (!rd_sink_open_file(&sink, p->from, &opts, err))
        return false;
    (void)aof_manifest_write(&plan->manifest, sink); /* the sink remembers a failure */
    return rd_sink_close(sink, err);
}

static bool swap_manifest(const struct aof_repair_state *plan, const struct aof_repair_run *run,
                          struct rd_err *err)
{
    struct paths p;
    if (make_paths(&p, run, run->manifest, err) && replace_manifest(plan, &p, err))
        return true;
    rd_err_origin(err, run->manifest);
    return false;
}

static bool cut(const char *path, const struct aof_repair_step *step, struct rd_err *err)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return rd_err_sys(err, errno, "open");
    bool ok = (fstat(fd, &st) == 0 || rd_err_sys(err, errno, "stat")) &&
              ((S_ISREG(st.st_mode) && (uint64_t)st.st_size == step->size) ||
               rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "it changed since it was read"));
    ok = ok && ((ftruncate(fd, (off_t)step->to) == 0 && fsync(fd) == 0) ||
                rd_err_sys(err, errno, "truncate"));
    if (close(fd) != 0 && ok)
        ok = rd_err_sys(err, errno, "close");
    return ok;
}

/* The conditions that must hold, and be durable, before the log changes. */
static bool prepare(const struct aof_repair_state *plan, const struct aof_repair_run *run,
                    struct rd_err *err)
{
    struct paths p;
    for (size_t i = 0; i < plan->n_steps; i++)
        if (!make_paths(&p, run, plan->steps[i].name, err) ||
            !is_as_planned(&plan->steps[i], p.from, err))
            return false;
    for (size_t i = 0; i < plan->n_steps && !run->no_copy; i++) {
        const struct aof_repair_step *step = &plan->steps[i];
        if (step->kind != AOF_REPAIR_CUT ||
            (make_paths(&p, run, step->name, err) && copy_file(p.from, p.saved, err)))
            continue;
        rd_err_origin(err, step->name);
        return false;
    }
    return true;
}

/* An existing file is not replaced, if the file system supports that. */
static bool set_aside(const char *from, const char *to, struct rd_err *err)
{
    if (rd_rename_new(AT_FDCWD, from, AT_FDCWD, to) == 0)
        return true;
    return ((errno == EINVAL || errno == ENOSYS) && rename(from, to) == 0) ||
           rd_err_sys(err, errno, "rename");
}

static bool carry_out(const struct aof_repair_step *step, const struct aof_repair_run *run,
                      struct rd_err *err)
{
    struct paths p;
    if (!make_paths(&p, run, step->name, err))
        return false;
    bool is_cut = step->kind == AOF_REPAIR_CUT;
    if (!(is_cut ? cut(p.from, step, err) : set_aside(p.from, p.saved, err))) {
        rd_err_origin(err, step->name);
        return false;
    }
    if (run->done != NULL)
        run->done(run->ctx, step, is_cut && run->no_copy ? NULL : p.saved_name);
    return true;
}

bool aof_repair_run(const struct aof_repair *plan, const struct aof_repair_run *run,
                    struct rd_err *err)
{
    const struct aof_repair_state *state = plan->state;
    struct aof_repair_run own;
    if (!rd_sized_copy(&own, sizeof own, run, err))
        return false;
    if (aof_repair_count(plan) == 0)
        return true;
    if (!prepare(state, &own, err) || (state->swap && !swap_manifest(state, &own, err)))
        return false;
    for (size_t i = 0; i < state->n_steps; i++)
        if (!carry_out(&state->steps[i], &own, err))
            return false;
    return sync_folder(own.folder, err);
}
